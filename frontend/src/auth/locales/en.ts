export default {
  title: 'Log in',
  lead: 'Train large language models and watch them learn.',
  token: 'Admin token',
  tokenHint: 'You’ll find it in {file}, in the platform’s data folder.',
  submit: 'Log in',
  withLink: 'Logging you in…',
  expired: 'Your session has expired. Log in again to pick up where you left off.',
  linkFailed: 'This login link has expired or was already used.',
  linkFailedHint: 'Create a new link on the machine that runs Trellis, or paste the token below:',
  linkTitle: 'Use a login link instead',
  linkHint: 'Trellis prints a one-time link at start-up. To get a new one, run this in its folder:',
  wrongToken: 'Invalid admin token.',
}
