// How the process ends: its exit codes, and an end that is not delayed.

export const EXIT_FAILURE = 1;
/** EX_CONFIG of sysexits.h. Supervisors need not start the service again. */
export const EXIT_CONFIG = 78;

/**
 * process.exit waits for the thread pool, where a look-up of a host name takes as long as a name server is silent. A signal ends the process
 * then: by SIGTERM if the code is 0, because supervisors take that for an orderly end.
 */
export function exit(code: number): never {
  if (process.getActiveResourcesInfo().includes('GetAddrInfoReqWrap')) {
    process.emit('exit', code);
    process.removeAllListeners('SIGTERM');
    process.kill(process.pid, code === 0 ? 'SIGTERM' : 'SIGKILL');
  }
  process.exit(code);
}
