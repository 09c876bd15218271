/** Lint rules: no `any`, no bare text in templates, ECharts only in src/charts, domains known by their index only. */
import js from '@eslint/js'
import globals from 'globals'
import vue from 'eslint-plugin-vue'
import ts from 'typescript-eslint'

const chartLibraries = ['echarts', 'echarts/*', 'vue-echarts', 'zrender', 'zrender/*']
/** Folders that all domains use; each other folder of src is a domain. */
const SHARED = ['api', 'charts', 'composables', 'format', 'i18n', 'testing', 'theme', 'ui']
/** They put the dashboard together, from each domain's pages and texts. */
const ASSEMBLY = ['src/*.ts', 'src/*.vue', 'src/i18n/texts/*.ts']
const inner = `^@/(?!(?:${SHARED.join('|')})/)[^/]+/`
const domain = `^@/(?!(?:${SHARED.join('|')})(?:/|$))`

/** What files of a kind may not import: `depth` is the number of folders between src and the file. */
function borders(files, { depth = 0, ignores = [], isShared = false, hasCharts = false }) {
  const patterns = []
  if (!hasCharts) patterns.push({ group: chartLibraries, message: 'Only src/charts imports the chart library.' })
  if (isShared) patterns.push({ regex: domain, message: 'What all domains use imports none of them.' })
  else if (depth > 0)
    patterns.push({ regex: inner, message: "Of another domain, only its index.ts: '@/jobs', not '@/jobs/types'." })
  if (depth > 0)
    patterns.push({ regex: `^(?:\\.\\./){${depth}}`, message: "Other folders of src are imported as '@/…'." })
  const loaded = isShared ? domain : inner
  return {
    files,
    ignores,
    rules: {
      'no-restricted-imports': ['error', { patterns }],
      'no-restricted-syntax':
        depth === 0
          ? 'off'
          : [
              'error',
              {
                selector: `ImportExpression[source.value=/${loaded.replaceAll('/', '\\u002F')}/]`,
                message: 'Of another domain, only its index.ts; it offers what is loaded late, too.',
              },
            ],
    },
  }
}

const DEPTHS = [1, 2, 3, 4, 5]

export default ts.config(
  { ignores: ['dist/', 'node_modules/', 'src/api/schema.d.ts'] },
  js.configs.recommended,
  ...ts.configs.strict,
  ...ts.configs.stylistic,
  ...vue.configs['flat/recommended'],
  {
    files: ['**/*.vue'],
    languageOptions: { parserOptions: { parser: ts.parser } },
  },
  {
    files: ['src/**/*.{ts,vue}'],
    languageOptions: { globals: globals.browser },
    rules: {
      'no-console': 'error',
      eqeqeq: ['error', 'smart'],
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      'vue/block-lang': ['error', { script: { lang: 'ts' } }],
      'vue/component-api-style': ['error', ['script-setup']],
      'vue/no-bare-strings-in-template': 'error',
      'vue/no-v-html': 'error',
      'vue/max-lines-per-block': ['error', { template: 240, script: 260, style: 200, skipBlankLines: true }],
      'vue/multi-word-component-names': 'off',
      // Formatting is Prettier's business.
      'vue/max-attributes-per-line': 'off',
      'vue/singleline-html-element-content-newline': 'off',
      'vue/html-self-closing': 'off',
      'vue/html-indent': 'off',
      'vue/html-closing-bracket-newline': 'off',
      'vue/multiline-html-element-content-newline': 'off',
      'vue/first-attribute-linebreak': 'off',
      'vue/attributes-order': 'off',
    },
  },
  borders(ASSEMBLY, {}),
  ...DEPTHS.flatMap((depth) => {
    const below = `${'*/'.repeat(depth - 1)}*.{ts,vue}`
    return [
      borders([`src/*/${below}`], { depth, ignores: ASSEMBLY }),
      borders(
        SHARED.map((folder) => `src/${folder}/${below}`),
        { depth, ignores: ASSEMBLY, isShared: true },
      ),
      borders([`src/charts/${below}`], { depth, isShared: true, hasCharts: true }),
    ]
  }),
  {
    files: ['*.config.{ts,mjs}', 'scripts/**'],
    languageOptions: { globals: globals.node },
  },
)
