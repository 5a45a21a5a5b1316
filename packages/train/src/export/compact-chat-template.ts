/**
 * The compact template for readers of Hugging Face checkpoints (Jinja): for a conversation in their form it gives the text whose ids
 * are those of `CompactTemplate`. Text that spells a special token becomes that token there, and never does here.
 */
export const COMPACT_CHAT_TEMPLATE = `{#- Treeward compact-v1 -#}
{%- macro spell(value) -%}
{{- value if value is string else value | tojson(separators=(',', ':'), sort_keys=true) -}}
{%- endmacro -%}
{%- macro text(content) -%}
{%- if content is string -%}{{- content -}}
{%- elif content -%}{%- for part in content if part.type == 'text' -%}{{- part.text -}}{%- endfor -%}
{%- endif -%}
{%- endmacro -%}
{{- '<sys>' -}}
{%- for tool in tools or [] -%}
  {%- set function = tool['function'] if 'function' in tool else tool -%}
  {%- set schema = function['parameters'] or {} -%}
  {%- set fields = schema['properties'] or {} -%}
  {%- set needed = schema['required'] or [] -%}
  {%- set found = namespace(paths=[]) -%}
  {%- for name in (fields.keys() | select('in', needed) | list) + (needed | reject('in', fields) | list) -%}
    {%- set inner = fields[name] if name in fields else {} -%}
    {%- set item = inner['items'] if inner['type'] == 'array' and 'items' in inner else {} -%}
    {%- set item_fields = item['properties'] or {} -%}
    {%- set item_needed = (item['required'] or []) if item['type'] == 'object' else [] -%}
    {%- if item_needed -%}
      {%- for field in (item_fields.keys() | select('in', item_needed) | list) + (item_needed | reject('in', item_fields) | list) -%}
        {%- set found.paths = found.paths + [name ~ '.0.' ~ field] -%}
      {%- endfor -%}
    {%- else -%}
      {%- set found.paths = found.paths + [name] -%}
    {%- endif -%}
  {%- endfor -%}
  {{- ' ' if not loop.first -}}{{- function['name'] ~ '(' ~ (found.paths | join(',')) ~ ')' -}}
{%- endfor -%}
{%- for message in messages -%}
  {%- if message['role'] == 'user' -%}{{- '<user>' ~ text(message['content']) -}}
  {%- elif message['role'] == 'tool' -%}{{- '<res>' ~ text(message['content'])[:400] -}}
  {%- elif message['role'] == 'assistant' -%}
    {{- '<asst>' -}}
    {%- if message['content'] -%}{{- text(message['content']) ~ '<eot>' -}}{%- endif -%}
    {%- for call in message['tool_calls'] or [] -%}
      {%- set function = call['function'] if 'function' in call else call -%}
      {{- '<call>' ~ function['name'] -}}
      {%- for name, value in function['arguments'].items() -%}
        {%- set objects = namespace(all=(value is sequence and value is not string and value is not mapping and value | length > 0)) -%}
        {%- if objects.all -%}
          {%- for item in value -%}{%- if item is not mapping -%}{%- set objects.all = false -%}{%- endif -%}{%- endfor -%}
        {%- endif -%}
        {%- if objects.all -%}
          {%- for item in value -%}
            {%- set index = loop.index0 -%}
            {%- for field, inner in item.items() -%}
              {{- '<arg>' ~ name ~ '.' ~ index ~ '.' ~ field ~ '<eq>' ~ spell(inner) -}}
            {%- endfor -%}
          {%- endfor -%}
        {%- else -%}
          {{- '<arg>' ~ name ~ '<eq>' ~ spell(value) -}}
        {%- endif -%}
      {%- endfor -%}
      {{- '<end>' -}}
    {%- endfor -%}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<asst>' -}}{%- endif -%}
`;
