package scenarios

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// Network forwards connections to a service, and disturbs them on request.
type Network struct {
	// URL is the address of the service through the network.
	URL    string
	target string

	mutex       sync.Mutex
	disturbance string
	connections map[net.Conn]bool
}

// NewNetwork returns a network that forwards to the service until the test ends.
func NewNetwork(t *testing.T, service string) *Network {
	t.Helper()
	address, err := url.Parse(service)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &Network{
		URL:         "http://" + listener.Addr().String(),
		target:      address.Host,
		connections: map[net.Conn]bool{},
	}
	var running sync.WaitGroup
	running.Add(1)
	go func() {
		defer running.Done()
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			running.Add(1)
			go func() {
				defer running.Done()
				n.forward(client)
			}()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		n.Disturb("away")
		running.Wait()
	})
	return n
}

// Disturb sets what happens to connections from now on. With "cut", the first answer of the service is lost and all
// connections end; with "silent", no request reaches the service; with "away", every connection ends at once. An
// empty text ends the disturbance.
func (n *Network) Disturb(disturbance string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.disturbance = disturbance
	if disturbance == "away" {
		n.cut()
	}
}

// cut ends all connections. The mutex must be locked.
func (n *Network) cut() {
	for connection := range n.connections {
		_ = connection.Close()
	}
}

// use adds a connection, until it is released.
func (n *Network) use(connection net.Conn) (release func()) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.connections[connection] = true
	if n.disturbance == "away" {
		_ = connection.Close()
	}
	return func() {
		n.mutex.Lock()
		defer n.mutex.Unlock()
		delete(n.connections, connection)
		_ = connection.Close()
	}
}

func (n *Network) forward(client net.Conn) {
	defer n.use(client)()
	server, err := net.Dial("tcp", n.target)
	if err != nil {
		return
	}
	defer n.use(server)()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer client.Close()
		n.copy(client, server, func() bool {
			if n.disturbance == "cut" {
				n.disturbance = ""
				n.cut()
			}
			return true
		})
	}()
	n.copy(server, client, func() bool { return n.disturbance != "silent" })
	_ = server.Close()
	<-done
}

// copy forwards the data that isForwarded returns true for. It is called with the mutex locked.
func (n *Network) copy(target io.Writer, source io.Reader, isForwarded func() bool) {
	buffer := make([]byte, 32<<10)
	for {
		length, err := source.Read(buffer)
		if length > 0 {
			n.mutex.Lock()
			isPassed := isForwarded()
			n.mutex.Unlock()
			if isPassed {
				if _, err := target.Write(buffer[:length]); err != nil {
					return
				}
			}
		}
		if err != nil {
			return
		}
	}
}
