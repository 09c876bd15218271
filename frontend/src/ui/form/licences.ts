/** Licenses that datasets and models mostly have; any other can be typed. */
export const LICENCE_OPTIONS = [
  'apache-2.0',
  'mit',
  'cc-by-4.0',
  'cc-by-sa-4.0',
  'cc-by-nc-4.0',
  'cc0-1.0',
  'odc-by',
].map((value) => ({ value, label: value }))
