// Serves the requests of a connection one at a time and in order. Node emits every pipelined request that it has parsed, up to 64 KiB
// of requests at once.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

/** How many waiting requests every connection may have, whatever the total. A connection with more is paused. */
const WAITING_ALWAYS = 16;

interface Pipeline {
  /** The response to the request that is being served, or was served last. */
  current: ServerResponse | undefined;
  /** The response to the newest request. */
  newest: ServerResponse | undefined;
  waiting: number;
}

export class Pipelines {
  readonly #waitingMax: number;
  readonly #pipelines = new WeakMap<Duplex, Pipeline>();
  #waiting = 0;

  /** Once `waitingMax` requests wait on all connections together, a connection that exceeds WAITING_ALWAYS is closed. */
  constructor(waitingMax: number) {
    this.#waitingMax = waitingMax;
  }

  /** Serves the request once all earlier responses of its connection are sent. */
  serve(incoming: IncomingMessage, outgoing: ServerResponse, listener: RequestListener): void {
    const { socket } = incoming;
    const pipeline = this.#pipelines.get(socket) ?? this.#open(socket);
    const previous = pipeline.newest;
    pipeline.newest = outgoing;
    const begin = () => {
      pipeline.current = outgoing;
      listener(incoming, outgoing);
    };
    if (previous === undefined || isSent(previous)) {
      begin();
      return;
    }
    if (this.#waiting >= this.#waitingMax && pipeline.waiting >= WAITING_ALWAYS) socket.destroy();
    if (socket.destroyed) return;
    this.#count(pipeline, 1);
    // Pauses in the next tick: an upgrade in the same chunk removes Node's listeners, and nothing would resume a paused socket.
    if (pipeline.waiting === WAITING_ALWAYS + 1) process.nextTick(() => this.#pause(pipeline, socket));
    previous.once('finish', () => {
      if (socket.destroyed || outgoing.socket === null) return;
      this.#count(pipeline, -1);
      if (pipeline.waiting === WAITING_ALWAYS && isParsed(socket)) socket.resume();
      begin();
    });
  }

  /**
   * Calls back once all responses of the connection are sent, unless it closes first. Replaces the listeners that Node has removed from
   * the socket: the response continues when the socket drains, and a connection that stalls or fails is closed.
   */
  whenSent(socket: Duplex, callback: () => void): void {
    const pipeline = this.#pipelines.get(socket);
    const newest = pipeline?.newest;
    if (newest === undefined || isSent(newest)) {
      callback();
      return;
    }
    const drain = () => pipeline?.current?.emit('drain');
    const close = () => socket.destroy();
    socket.on('drain', drain).on('timeout', close).on('error', close);
    newest.once('finish', () => {
      socket.off('drain', drain).off('timeout', close).off('error', close);
      if (socket.writable) callback();
    });
  }

  /** Returns the newest response if a client would take bytes written to the socket now as part of this response or an earlier one. */
  unsentResponse(socket: Duplex): ServerResponse | undefined {
    const newest = this.#pipelines.get(socket)?.newest;
    if (newest === undefined || isSent(newest)) return undefined;
    const isArriving = newest.socket !== null && !newest.headersSent && !newest.req.complete;
    return isArriving ? undefined : newest;
  }

  #open(socket: Duplex): Pipeline {
    const pipeline: Pipeline = { current: undefined, newest: undefined, waiting: 0 };
    this.#pipelines.set(socket, pipeline);
    socket.once('close', () => this.#count(pipeline, -pipeline.waiting));
    return pipeline;
  }

  #pause({ waiting }: Pipeline, socket: Duplex): void {
    if (waiting > WAITING_ALWAYS && isParsed(socket)) socket.pause();
  }

  #count(pipeline: Pipeline, change: number): void {
    pipeline.waiting += change;
    this.#waiting += change;
  }
}

/** Whether Node parses the bytes that the socket receives. */
function isParsed(socket: Duplex): boolean {
  return socket.listenerCount('data') > 0;
}

/** Node detaches a response from its socket once the response is sent. */
function isSent(response: ServerResponse): boolean {
  return response.writableEnded && response.socket === null;
}
