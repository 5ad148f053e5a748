// Command ratelimit-client asks a rate limit service of Envoy with the client that is generated from its definitions. Each
// line of its input is a request as JSON of protobuf; each line of its output is the answer, or the error.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
)

const timeout = 10 * time.Second

func main() {
	if err := run(os.Args[1], os.Getenv("RATELIMIT_AUTHORIZATION")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run answers the requests of the input with those of the service at the address.
func run(address, authorization string) error {
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	client := ratelimitv3.NewRateLimitServiceClient(connection)
	background := context.Background()
	if authorization != "" {
		background = metadata.AppendToOutgoingContext(background, "authorization", authorization)
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var request ratelimitv3.RateLimitRequest
		if err := protojson.Unmarshal(lines.Bytes(), &request); err != nil {
			return err
		}
		answer, err := ask(background, client, &request)
		if err != nil {
			return err
		}
		fmt.Println(answer)
	}
	return lines.Err()
}

func ask(
	background context.Context,
	client ratelimitv3.RateLimitServiceClient,
	request *ratelimitv3.RateLimitRequest,
) (string, error) {
	limited, cancel := context.WithTimeout(background, timeout)
	defer cancel()
	response, err := client.ShouldRateLimit(limited, request)
	if err != nil {
		return fmt.Sprintf(`{"error": %q}`, status.Code(err).String()), nil
	}
	text, err := protojson.Marshal(response)
	return string(text), err
}
