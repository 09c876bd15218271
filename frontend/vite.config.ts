/** Build and development server of the dashboard. */
import { fileURLToPath, URL } from 'node:url'

import vue from '@vitejs/plugin-vue'
import { defineConfig } from 'vitest/config'

const api = process.env.TRELLIS_API ?? 'http://127.0.0.1:8001'

export default defineConfig({
  plugins: [vue()],
  resolve: { alias: { '@': fileURLToPath(new URL('./src', import.meta.url)) } },
  define: {
    // vue-i18n's composition API is all we use; messages are plain strings, so no compiler flags are needed.
    __VUE_I18N_LEGACY_API__: 'false',
    __VUE_I18N_FULL_INSTALL__: 'false',
    __INTLIFY_PROD_DEVTOOLS__: 'false',
  },
  server: {
    port: 5173,
    proxy: { '/api': { target: api, changeOrigin: false } },
  },
  build: {
    target: 'es2022',
    // Data: URLs for scripts and fonts would need a wider content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 900,
    rollupOptions: {
      input: { dashboard: 'index.html', reference: 'api.html' },
      output: {
        manualChunks(id) {
          if (/node_modules\/(echarts|zrender|vue-echarts)\//.test(id)) return 'charts'
          if (/node_modules\/(vue|@vue|vue-router|pinia|vue-i18n|@intlify)\//.test(id)) return 'vue'
          return undefined
        },
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
      { extends: true, test: { name: 'logic', include: ['src/**/*.test.ts'], exclude: ['src/**/*.page.test.ts'], environment: 'node', pool: 'threads' } },
      // One page for all: Vue and the components' library keep the document that they first saw.
      { extends: true, test: { name: 'page', include: ['src/**/*.page.test.ts'], environment: 'jsdom', pool: 'forks' } },
    ],
  },
})
