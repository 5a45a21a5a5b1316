/** Sentences of npm, pip, apt, git and node that mean "could not reach the other side", most telling first. */
const SIGNS = [
  [
    /\b(ENOTFOUND|EAI_AGAIN|Temporary failure (?:in name resolution|resolving)|Could not resolve|getaddrinfo)\b/i,
    'the name of the registry could not be resolved',
  ],
  [/\b(ECONNREFUSED|Connection refused)\b/i, 'the registry refused the connection'],
  [/\b(ENETUNREACH|EHOSTUNREACH|Network is unreachable|No route to host)\b/i, 'the network is unreachable'],
  [
    /\b(ETIMEDOUT|ERR_SOCKET_TIMEOUT|Read timed out|ConnectTimeoutError|Connection timed out|idle timeout)\b/i,
    'the connection timed out',
  ],
  [
    /\b(ECONNRESET|EPIPE|Connection reset|Connection broken|RemoteDisconnected|network aborted|socket hang up)\b/i,
    'the connection broke off',
  ],
  [
    /\b(ENOTCACHED|EOFFLINE|only-if-cached)\b/i,
    'npm is set to work offline and the package is not in its cache',
  ],
  [
    /\b(CERT_|SELF_SIGNED|UNABLE_TO_GET_ISSUER|SSLError|CERTIFICATE_VERIFY_FAILED)/,
    'the certificate of the registry is not trusted',
  ],
  [/\b(ProxyError|Tunnel connection failed)\b/i, 'the proxy did not let the request through'],
  [
    /\bFailed to fetch\b|\bSome index files failed to download\b|\bNewConnectionError\b/i,
    'the download failed',
  ],
  // pip hides why an index did not answer once its retries are used up.
  [/\(from versions: none\)/, 'the package index could not be reached, or offers no version of it'],
];

/** In words, what part of the network failed according to a command's output; undefined when nothing points to it. */
export function explainNetwork(output) {
  return SIGNS.find(([pattern]) => pattern.test(output))?.[1];
}
