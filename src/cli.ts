#!/usr/bin/env node
// The command `chambers`.
import './process/require-node.ts';
import { cliMain } from './cli/main.ts';
import { exitWithOutput } from './process/terminal.ts';

exitWithOutput();
process.exitCode = await cliMain(process.argv.slice(2));
