// Package latchkeygin protects routes of Gin: [Verify] accepts only requests with a valid key, [Ratelimit] limits requests.
//
//	client, err := latchkey.New()
//	verify := latchkeygin.Verify(client, latchkeyhttp.VerifyOptions{APIs: []string{"api_123"}})
//	router.GET("/documents/:id", verify, documents)
//
// The options and the answers are those of latchkeyhttp, and latchkeyhttp.KeyFrom(c.Request.Context()) returns the key.
package latchkeygin

import (
	"net/http"

	"github.com/gin-gonic/gin"
	latchkey "github.com/latchkey/latchkey/clients/go"
	"github.com/latchkey/latchkey/clients/go/latchkeyhttp"
)

// Verify returns middleware that verifies the key of each request. The route in the analytics is that of Gin, such as
// /documents/:id. It panics if an option cannot be used, with a text that names the option.
func Verify(client *latchkey.Client, options latchkeyhttp.VerifyOptions) gin.HandlerFunc {
	return handler(latchkeyhttp.Verify(client, options))
}

// Ratelimit returns middleware that limits requests. It panics if an option cannot be used, with a text that names the
// option.
func Ratelimit(client *latchkey.Client, options latchkeyhttp.RatelimitOptions) gin.HandlerFunc {
	return handler(latchkeyhttp.Ratelimit(client, options))
}

func handler(middleware func(http.Handler) http.Handler) gin.HandlerFunc {
	return func(c *gin.Context) {
		isPassed := false
		next := http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
			isPassed = true
			c.Request = request
			if response == http.ResponseWriter(c.Writer) {
				c.Next()
				return
			}
			counted := &writer{c.Writer, response}
			c.Writer = counted
			c.Next()
			counted.noteStatus()
		})
		request := c.Request.WithContext(c.Request.Context())
		request.Pattern = c.FullPath()
		middleware(next).ServeHTTP(c.Writer, request)
		if !isPassed {
			c.Abort()
		}
	}
}

// writer sends through another one, which counts what an answer with a hold sends, or joins its headers.
type writer struct {
	gin.ResponseWriter
	counting http.ResponseWriter
}

// noteStatus tells the status that is sent. Until the body begins, Gin only remembers the last one of its WriteHeader.
func (w *writer) noteStatus() { w.counting.WriteHeader(w.Status()) }

func (w *writer) Write(part []byte) (int, error) {
	w.noteStatus()
	return w.counting.Write(part)
}

// WriteHeaderNow begins the answer without a body.
func (w *writer) WriteHeaderNow() {
	w.noteStatus()
	w.ResponseWriter.WriteHeaderNow()
}

// Flush is that of Gin, for handlers that stream.
func (w *writer) Flush() {
	w.noteStatus()
	w.ResponseWriter.Flush()
}

func (w *writer) WriteString(text string) (int, error) { return w.Write([]byte(text)) }
