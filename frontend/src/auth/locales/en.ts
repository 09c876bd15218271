export default {
  title: 'Log in',
  lead: 'Launch and watch the training of language models.',
  token: 'Admin token',
  tokenHint: 'It lies in {file}, in the folder of the platform’s data.',
  submit: 'Log in',
  withLink: 'Logging you in with the link …',
  expired: 'Your session is over. Log in again to go on where you were.',
  linkFailed: 'This login link was used already or is too old.',
  linkFailedHint: 'Make a new one on the machine where Trellis runs, or paste the token below:',
  linkTitle: 'Easier: a login link',
  linkHint: 'Trellis prints a link, good for one login, when it starts. For a new one, run this in its folder:',
  wrongToken: 'This is not the admin token.',
}
