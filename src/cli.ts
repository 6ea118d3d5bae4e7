#!/usr/bin/env node
// The command `chambers`.
import './require-node.ts';
import { cliMain } from './cli/main.ts';

// A reader such as `head` that has seen enough ends the output, which is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});

process.exitCode = await cliMain(process.argv.slice(2));
