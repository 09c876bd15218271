/** swagger-ui-dist ships no types; this is the part that the reference page uses. */
declare module 'swagger-ui-dist/swagger-ui-es-bundle.js' {
  interface Options {
    url: string
    dom_id: string
    deepLinking: boolean
    requestInterceptor: <Request extends { headers: Record<string, string> }>(request: Request) => Request
  }
  export default function SwaggerUI(options: Options): unknown
}
