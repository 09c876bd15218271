/** Texts of what was measured of tokens. */
export default {
  title: 'Tokens',
  colors: 'Colors show',
  measure: {
    log_prob: 'Log-probability',
    entropy: 'Entropy',
    advantage: 'Advantage',
    kl: 'KL to reference',
    difference: 'Trainer − rollout',
  },
  help: {
    log_prob: 'Under the policy before the update, in nats. Darker: less likely.',
    entropy: "Of the policy's next-token distribution, in nats. Darker: less certain.",
    advantage: 'Green: the update makes the token more likely. Red: less likely.',
    kl: 'Estimated from the two log-probabilities, in nats. Darker: further from the reference.',
    difference: 'Log-probability of the trainer minus that of the rollout engine. 0 is what it should be.',
  },
  point: 'Point at a token, or focus the text and press ← →.',
  keys: 'Tokens; left and right arrow keys go from one to the next',
  token: 'Token {number} {text}',
  part: 'Tokens {from} to {to} of {all}: those around the one that stands out most.',
  none: 'No tokens kept',
  noneText:
    'Tokens of a few training responses are kept, of up to 200 steps spread over the run and of steps that stand out.',
  nearest: 'No tokens were kept of step {asked}. These are of step {step}, the nearest one.',
  notMeasured: 'This run does not measure: {measure}.',
  responsesAt: 'Responses of step {step}',
  tokensAt: 'Tokens behind step {step}',
}
