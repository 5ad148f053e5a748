package latchkeyhttp

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
)

// joiningWriter joins headers that were added with those of a handler that sets them too, when they are sent.
type joiningWriter struct {
	http.ResponseWriter
	added  http.Header
	isSent bool
}

func (w *joiningWriter) join() {
	if w.isSent {
		return
	}
	w.isSent = true
	for name := range w.added {
		value, own := w.added.Get(name), strings.Join(w.Header().Values(name), ", ")
		if own != "" && !strings.Contains(", "+own+", ", ", "+value+", ") {
			w.Header().Set(name, value+", "+own)
		}
	}
}

func (w *joiningWriter) WriteHeader(status int) {
	if status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		w.join()
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *joiningWriter) Write(part []byte) (int, error) {
	w.join()
	return w.ResponseWriter.Write(part)
}

// ReadFrom is that of the server, which sends files without copying them.
func (w *joiningWriter) ReadFrom(source io.Reader) (int64, error) {
	w.join()
	return io.Copy(w.ResponseWriter, source)
}

// Flush is that of the server, for handlers that stream.
func (w *joiningWriter) Flush() {
	w.join()
	_ = http.NewResponseController(w.ResponseWriter).Flush()
}

// Hijack is that of the server.
func (w *joiningWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

// Push is that of the server.
func (w *joiningWriter) Push(target string, options *http.PushOptions) error {
	if pusher, ok := w.ResponseWriter.(http.Pusher); ok {
		return pusher.Push(target, options)
	}
	return http.ErrNotSupported
}

// Unwrap is for http.ResponseController.
func (w *joiningWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
