/** Lint rules: no `any`, no bare text in templates, ECharts only in src/charts. */
import js from '@eslint/js'
import globals from 'globals'
import vue from 'eslint-plugin-vue'
import ts from 'typescript-eslint'

const chartLibraries = ['echarts', 'echarts/*', 'vue-echarts', 'zrender', 'zrender/*']

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
      'vue/max-lines-per-block': ['error', { template: 160, script: 200, style: 160, skipBlankLines: true }],
      'vue/multi-word-component-names': 'off',
      // Formatting is the editor's business; these rules fight over line breaks.
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
  {
    files: ['src/**/*.{ts,vue}'],
    ignores: ['src/charts/**'],
    rules: {
      'no-restricted-imports': [
        'error',
        { patterns: [{ group: chartLibraries, message: 'Only src/charts imports the chart library.' }] },
      ],
    },
  },
  {
    files: ['*.config.{ts,mjs}', 'scripts/**'],
    languageOptions: { globals: globals.node },
  },
)
