export const EXIT_FAILURE = 1;
/** EX_CONFIG in sysexits.h: a restart would fail too. */
export const EXIT_CONFIG = 78;

/**
 * process.exit waits for the thread pool, where a DNS lookup may be waiting for an unresponsive name server. In that case, a signal ends the
 * process: SIGTERM instead of code 0, because supervisors treat it as an orderly exit.
 */
export function exit(code: number): never {
  if (process.getActiveResourcesInfo().includes('GetAddrInfoReqWrap')) {
    process.emit('exit', code);
    process.removeAllListeners('SIGTERM');
    process.kill(process.pid, code === 0 ? 'SIGTERM' : 'SIGKILL');
  }
  process.exit(code);
}
