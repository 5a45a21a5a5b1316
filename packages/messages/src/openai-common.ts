const ERROR_TYPE: Record<number, { type: string; code: string | null }> = {
  401: { type: 'invalid_request_error', code: 'invalid_api_key' },
  429: { type: 'rate_limit_error', code: 'rate_limit_exceeded' },
  503: { type: 'server_error', code: 'server_is_overloaded' },
};

export interface OpenaiErrorBody {
  error: { message: string; type: string; param: null; code: string | null };
}

/** Error body of both OpenAI dialects. */
export function openaiError(status: number, message: string, code: string | null = null): OpenaiErrorBody {
  const known = ERROR_TYPE[status] ?? {
    type: status < 500 ? 'invalid_request_error' : 'server_error',
    code: null,
  };
  return { error: { message, type: known.type, param: null, code: code ?? known.code } };
}

const model = (id: string): unknown => ({ id, object: 'model', created: 0, owned_by: 'treeward' });

export const openaiModels = (id: string | null): unknown =>
  id === null ? { object: 'list', data: [model('policy')] } : model(id);

/** Seconds since the epoch. */
export const now = (): number => Math.floor(Date.now() / 1000);
