/** Texts of the metrics of agents. */
export default {
  agentMetric: {
    accuracy: { title: 'Accuracy', help: 'Share that is right; of an episode, that is a score above 0.5.' },
    score: { title: 'Score (mean)', help: 'How much of what was asked for was found, and little else: 0 to 1.' },
    reward: { title: 'Reward (mean)', help: 'Outcome, shaping and penalties together: what training pulls towards.' },
    hits: { title: 'Hits (mean)', help: 'Right results in an answer.' },
    turns: { title: 'Turns (mean)', help: 'Answers of the model in an episode.' },
    firstHit: { title: 'Turn of the first hit (mean)', help: 'The turn in which a search first showed somebody who fits, over the episodes where one did.' },
    tokens: { title: 'Tokens of an episode (mean)', help: 'Prompt, answers of the model and what the tools answered.' },
    sampledTokens: { title: 'Tokens written (mean)', help: 'Those of an episode that the model wrote itself.' },
    policyLoss: { title: 'Policy loss', help: 'Over the tokens that are trained on; its size says little, its sign is no verdict.' },
    calls: { title: 'Tool calls (mean)', help: 'Calls in an episode, failed ones included.' },
    callErrors: { title: 'Failed calls (mean)', help: 'Calls in an episode that were answered with an error.' },
    episodeTime: { title: 'Time of an episode (mean)', help: 'From the question to the end; episodes of a step run side by side.' },
    answered: { title: 'Answered (share)', help: 'Share of episodes that ended with an answer.' },
    malformed: { title: 'Malformed turns (mean)', help: 'Turns in an episode with a call that could not be read or does not exist.' },
    recall: { title: "Recall{'@'}{k}", help: 'Share of requests with the right tool among the first ones found.' },
    mrr: { title: "Mean reciprocal rank{'@'}{k}", help: '1 where the right tool comes first, 1/2 where it comes second, and so on.' },
    workflowErrors: { title: 'Failed workflows (share)', help: 'Share of episodes in which the workflow failed; they teach nothing.' },
  },
  chartGroup: { agent: 'Agent', training: 'Training' },
}
