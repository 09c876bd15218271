/** The API's reference page: Swagger UI over the platform's own schema, from our own server. */
import SwaggerUI from 'swagger-ui-dist/swagger-ui-es-bundle.js'
import 'swagger-ui-dist/swagger-ui.css'

import { CLIENT_HEADERS } from '@/api/client'

SwaggerUI({
  url: '/api/v1/openapi.json',
  dom_id: '#reference',
  deepLinking: true,
  // With a login in this browser, "Try it out" works; the header shows that the request is not forged.
  requestInterceptor: (request) => {
    Object.assign(request.headers, CLIENT_HEADERS)
    return request
  },
})
