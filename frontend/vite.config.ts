/** Build and development server of the dashboard. */
import { fileURLToPath, URL } from 'node:url'

import vue from '@vitejs/plugin-vue'
import { defineConfig } from 'vitest/config'

import { precompress } from './scripts/precompress'

const api = process.env.TRELLIS_API ?? 'http://127.0.0.1:8001'

/**
 * Few files that most pages share, since on a slow line each further file costs a round trip: what the login page
 * needs, the component library's common parts, our own common parts. The rest is split by page.
 */
const CHUNKS: readonly (readonly [string, RegExp])[] = [
  // Texts of one language each, and tables that only Chinese readers need.
  ['texts', /src\/i18n\/texts\/|\/locales\/(en|zh)\.ts$|src\/i18n\/(apiErrors|dataTexts|issueTexts|serverTexts)\.ts$/],
  [
    'charts-more',
    /node_modules\/echarts\/lib\/(chart\/(bar|radar)\/|chart\/custom\/(CustomView|CustomSeries|install)|coord\/radar\/|component\/radar\/)/,
  ],
  ['charts', /node_modules\/(echarts|zrender|vue-echarts)\//],
  ['vue', /node_modules\/(vue|@vue|vue-router|pinia|vue-i18n|@intlify)\//],
  [
    'base',
    /vite\/preload-helper|plugin-vue:export-helper|node_modules\/openapi-fetch\/|src\/(main\.ts|App\.vue|router\.ts)|src\/api\/(client|connection|errors|json)|src\/auth\/|src\/composables\/(storedChoice|pageTitle)|src\/i18n\/(index|useErrorText)\.ts|src\/theme\/(store|palettes)|src\/layout\/chunks|src\/ui\/(Icon|icons|Logo|CommandLine|useCopy)|\/routes\.ts/,
  ],
  [
    'library-dark',
    /naive-ui\/es\/(themes\/|_styles\/common\/dark|(_internal\/)?[\w-]+\/styles\/dark)|src\/theme\/libraryDark/,
  ],
  [
    'library-zh',
    /src\/theme\/libraryTextsZh|naive-ui\/es\/locales\/(common|date)\/zhCN|node_modules\/date-fns\/locale\/zh-CN/,
  ],
  [
    'library',
    /node_modules\/date-fns\/locale\/(_lib|en-US)[/.]|node_modules\/(@?css-render|vooks|vueuc|evtd|vdirs|seemly|treemate|lodash-es)\/|naive-ui\/es\/(_mixins|_styles|_utils|vue-jsx-vapor|(_internal\/)?[\w-]+\/styles|locales\/(common|date)\/enUS|_internal\/(clear|close|fade-in-expand-transition|focus-detector|icons?|icon-switch-transition|loading|scrollbar|select-menu|suffix|wave)|alert|button|button-group|card|config-provider|dialog|drawer|dropdown|empty|icon|input|message|modal|popover|scrollbar|skeleton|tooltip)\//,
  ],
  [
    'ui',
    /node_modules\/@vueuse\/|src\/(api\/(?!upload)|composables\/|i18n\/|ui\/(?!form|graph|schema|tree|Markdown|markdown|marking|CodeFile)|format\/|layout\/(?!ShortcutDialog|NotFoundPage)|theme\/naive|theme\/libraryTexts\.ts|overview\/HealthMark)/,
  ],
]

/** Components that only some pages use have a file each: what a page imports would bring the library's index with it. */
function chooseChunk(id: string): string | undefined {
  const name = CHUNKS.find(([, pattern]) => pattern.test(id))?.[0]
  if (name !== undefined) return name === 'texts' ? undefined : name
  const part = /naive-ui\/es\/(?:_internal\/)?([\w-]+)\//.exec(id)?.[1]
  return part === undefined || part === 'locales' ? undefined : `part-${TOGETHER[part] ?? part}`
}

/** What a domain offers to others: who takes one thing from it does not get the rest. */
const DOMAIN_INDEX = /^(?!.*node_modules).*\/src\/(?!i18n\/)[^/]+\/index\.ts$/

/** Parts that import each other. */
const TOGETHER: Readonly<Record<string, string>> = { 'time-picker': 'date-picker', 'tree-select': 'tree' }

export default defineConfig({
  plugins: [vue(), precompress()],
  resolve: { alias: { '@': fileURLToPath(new URL('./src', import.meta.url)) } },
  define: {
    // vue-i18n's composition API is all we use; messages are plain strings, so no compiler flags are needed.
    __VUE_I18N_LEGACY_API__: 'false',
    __VUE_I18N_FULL_INSTALL__: 'false',
    __INTLIFY_PROD_DEVTOOLS__: 'false',
  },
  server: {
    port: 5173,
    // The documentation lies beside the dashboard.
    fs: { allow: ['..'] },
    proxy: { '/api': { target: api, changeOrigin: false } },
  },
  build: {
    target: 'es2022',
    // Data: URLs for scripts and fonts would need a wider content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // The page of the API's reference is one library, and nothing else loads it.
    chunkSizeWarningLimit: 1700,
    rollupOptions: {
      treeshake: { moduleSideEffects: (id) => !DOMAIN_INDEX.test(id) },
      onwarn(warning, warn) {
        // Domains use each other; their indexes leave nothing in the build, so that no chunks import each other.
        if (warning.code === 'CYCLIC_CROSS_CHUNK_REEXPORT' && DOMAIN_INDEX.test(warning.reexporter ?? '')) return
        // Of many components only types are used, or none.
        if (warning.code === 'EMPTY_BUNDLE') return
        warn(warning)
      },
      input: { dashboard: 'index.html', reference: 'api.html' },
      output: {
        manualChunks: chooseChunk,
      },
    },
  },
  test: {
    // Dates in assertions are written in UTC.
    env: { TZ: 'UTC' },
    // A bound for what hangs: a machine may be busy with other suites.
    testTimeout: 30_000,
    // Files share a process and what it imported: that takes far longer than the tests. vitest reads this here alone.
    poolOptions: { threads: { isolate: false }, forks: { isolate: false, singleFork: true } },
    projects: [
      {
        extends: true,
        test: {
          name: 'logic',
          include: ['src/**/*.test.ts'],
          exclude: ['src/**/*.page.test.ts'],
          environment: 'node',
          pool: 'threads',
        },
      },
      // One page for all: Vue and the components' library keep the document that they first saw.
      {
        extends: true,
        test: {
          name: 'page',
          include: ['src/**/*.page.test.ts'],
          environment: 'jsdom',
          pool: 'forks',
          setupFiles: ['src/testing/texts.ts'],
        },
      },
    ],
  },
})
