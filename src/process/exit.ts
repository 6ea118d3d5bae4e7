// Exit codes, and an exit without delay.

export const EXIT_FAILURE = 1;
/** EX_CONFIG of sysexits.h: a restart would fail too. */
export const EXIT_CONFIG = 78;

/**
 * process.exit waits for the thread pool, where a host name look-up may wait for a silent name server. Then a signal ends the process:
 * SIGTERM if the code is 0, because supervisors treat that as an orderly exit.
 */
export function exit(code: number): never {
  if (process.getActiveResourcesInfo().includes('GetAddrInfoReqWrap')) {
    process.emit('exit', code);
    process.removeAllListeners('SIGTERM');
    process.kill(process.pid, code === 0 ? 'SIGTERM' : 'SIGKILL');
  }
  process.exit(code);
}
