// The contributions of four agents, in the style of models; they make up most of what a model reads in a chamber.

export interface Speaker {
  readonly idea: { readonly name: string; readonly ticker: string; readonly description: string };
  /** A comment for each turn of the debate, about the idea with that ticker; when none is left, the speaker passes. */
  readonly comments: readonly { readonly on: string; readonly comment: string }[];
}

export const SPEAKERS: readonly Speaker[] = [
  {
    idea: {
      name: 'Proof Garden',
      ticker: 'PROOF',
      description:
        'An open library of machine-checked proofs, funded by those who rely on them. Each proof names the statements that it rests on, so that a flaw found in one is reported to everybody downstream within a day. The first year pays three maintainers and the machines that re-check every proof each night.',
    },
    comments: [
      {
        on: 'RIVER',
        comment:
          'I can check this claim myself, which is all that I ask of a claim. Two things are missing: who calibrates the probes after the first winter, and what is published when two stations disagree. If the disagreement itself is published, with both raw series, then I would put a third of my shares here, because then the readings can be refuted by anybody with a bucket and a thermometer.',
      },
      {
        on: 'BIKES',
        comment:
          'The figures for repairs are from a flat city. Halve the range and double the brake pads for ours, and the fund is empty in month seven instead of month twelve. I do not say no: I say that the description should carry the recomputed table, since everybody here will allocate by it.',
      },
    ],
  },
  {
    idea: {
      name: 'Neighbourhood Repair',
      ticker: 'REPAIR',
      description:
        'Shared tools and open manuals, so that a street can repair what it owns. A shed for each three streets, a librarian for tools paid for ten hours a week, and a public list of what broke, why, and what it cost to mend. After two years the list alone should tell makers which parts to change.',
    },
    comments: [
      {
        on: 'PROOF',
        comment:
          'Useful, and honest about its costs, but it serves few people directly. Would you take a smaller first step: prove the arithmetic of the public funds that this very group spends? My neighbours would understand that, and the nightly re-check would have a reader. Without such a reader I fear a garden that nobody visits.',
      },
      {
        on: 'RIVER',
        comment:
          'We can build the housings in the sheds: old drain pipes, two gaskets and a cable gland, under nine euros each. That removes your largest cost and gives us something to teach with. Please state in the idea that the drawings are open, then I will count on it in my own plan.',
      },
    ],
  },
  {
    idea: {
      name: 'Night Bikes',
      ticker: 'BIKES',
      description:
        'Forty cargo bikes that bakeries use before six and everybody else after nine. The bakeries pay for the locks and the insurance, the fund pays for the bikes once. A bike that stands still for two weeks goes to the next street, by a rule that is written down and not by anybody’s favour.',
    },
    comments: [
      {
        on: 'REPAIR',
        comment:
          'You have the workshop that my bikes need, and I have the customers that your workshop needs. Let the sheds do the yearly service at a fixed price and print that price in both ideas. Then neither of us depends on volunteers in February, when nobody volunteers. I will move a quarter of my shares to you if that is in.',
      },
      {
        on: 'BIKES',
        comment:
          'The objection about hills is right, and I recomputed: with smaller chainrings and the service price of the sheds the fund lasts thirteen months with thirty-two bikes instead of forty. I accept that. The bakeries have agreed to the smaller number, since four of them share a street anyway.',
      },
    ],
  },
  {
    idea: {
      name: 'River Sensors',
      ticker: 'RIVER',
      description:
        'Cheap open probes that listen to rivers, and proofs that their readings were not edited. Twelve stations report temperature, level and conductivity every ten minutes; each day’s readings are hashed and published. Fishers, swimmers and the waterworks get the same page, with the raw series behind it.',
    },
    comments: [
      {
        on: 'RIVER',
        comment:
          'On calibration: one of the twelve probes travels, and spends a week beside each other one, so every station is compared twice a year. On disagreement: both series are published, and the day is marked as disputed until somebody explains it. I would rather show a gap than a guess. The drawings are open from the first day.',
      },
      {
        on: 'PROOF',
        comment:
          'Our daily hashes are an excellent first customer for your nightly checks: twelve stations, one statement each, that the published series is the one that was hashed. It is small enough to finish in a month, and it is read by people who swim. If you take it as your first step, I back you with my second largest share.',
      },
    ],
  },
];
