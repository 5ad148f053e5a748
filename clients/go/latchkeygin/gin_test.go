package latchkeygin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	latchkey "github.com/latchkey/latchkey/clients/go"
	"github.com/latchkey/latchkey/clients/go/internal/scenarios"
	"github.com/latchkey/latchkey/clients/go/latchkeygin"
	"github.com/latchkey/latchkey/clients/go/latchkeyhttp"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	scenarios.Main(m)
}

func Example() {
	client, err := latchkey.New()
	if err != nil {
		log.Fatal(err)
	}
	apiID, plainKey, limitedKey := newKeys(client)
	router := gin.New()

	verify := latchkeygin.Verify(client, latchkeyhttp.VerifyOptions{APIs: []string{apiID}})
	router.GET("/documents/:id", verify, func(c *gin.Context) {
		key, _ := latchkeyhttp.KeyFrom(c.Request.Context())
		owner := "nobody"
		if key.Identity != nil { // Nil for a key that was created without an owner.
			owner = key.Identity.ExternalID
		}
		c.String(http.StatusOK, "document %s for %s", c.Param("id"), owner)
	})

	for _, authorization := range []string{"", "Bearer " + plainKey, "Bearer " + limitedKey, "Bearer " + limitedKey} {
		fmt.Println(ask(router, authorization))
	}
	// Output:
	// 401 The request has no API key in the header Authorization.
	// 200 document 7 for nobody
	// 200 document 7 for user_1
	// 429 The API key has reached a limit.
}

func ExampleRatelimit() {
	client, err := latchkey.New()
	if err != nil {
		log.Fatal(err)
	}
	router := gin.New()
	router.Use(latchkeygin.Ratelimit(client, latchkeyhttp.RatelimitOptions{
		Namespace: "gin visitors", Limit: 1, Duration: 24 * time.Hour, Identifier: latchkeyhttp.ByAddress,
	}))
	router.GET("/documents/:id", func(c *gin.Context) { c.String(http.StatusOK, "welcome") })

	for range 2 {
		fmt.Println(ask(router, ""))
	}
	// Output:
	// 200 welcome
	// 429 A limit of requests has been reached.
}

// The handlers after a rejection do not run, those after a verification run once, and the route is sent as a tag.
func TestChain(t *testing.T) {
	client, err := latchkey.New()
	if err != nil {
		t.Fatal(err)
	}
	apiID, plainKey, _ := newKeys(client)
	var sent latchkey.VerifyKeyInput
	calls := 0
	count := func(*gin.Context) { calls++ }
	router := gin.New()
	verify := latchkeygin.Verify(client, latchkeyhttp.VerifyOptions{
		APIs:  []string{apiID},
		Input: func(_ *http.Request, input *latchkey.VerifyKeyInput) error { sent = *input; return nil },
	})
	router.GET("/documents/:id", count, verify, verify, count, count)

	ask(router, "Bearer none")
	if calls != 1 {
		t.Errorf("%d handlers ran of a rejected request, not 1", calls)
	}
	calls = 0
	ask(router, "Bearer "+plainKey)
	if calls != 3 {
		t.Errorf("%d handlers ran of an accepted request, not 3", calls)
	}
	if tags := strings.Join(sent.Tags, " "); !strings.Contains(tags, "path=/documents/:id") {
		t.Errorf("the tags are %q", tags)
	}
}

// Gin sends the last status before the body. It decides whether a hold is settled.
func TestTheStatusThatIsSentDecides(t *testing.T) {
	client, err := latchkey.New()
	if err != nil {
		t.Fatal(err)
	}
	apiID, plainKey, _ := newKeys(client)
	answers := make(chan latchkeyhttp.EndedAnswer, 1)
	verify := latchkeygin.Verify(client, latchkeyhttp.VerifyOptions{
		APIs: []string{apiID},
		Hold: &latchkeyhttp.HoldOptions{
			Settle: func(_ *http.Request, answer latchkeyhttp.EndedAnswer) (latchkey.Settlement, error) {
				answers <- answer
				return latchkey.Settlement{}, nil
			},
		},
	})
	for _, each := range []struct {
		handler gin.HandlerFunc
		status  int
		bytes   int64
	}{
		{func(c *gin.Context) { c.Status(http.StatusNotFound); c.String(http.StatusOK, "found") }, 200, 5},
		{func(c *gin.Context) { c.Status(http.StatusOK); c.JSON(http.StatusNotFound, gin.H{}) }, 404, 2},
		{func(c *gin.Context) { _, _ = c.Writer.WriteString("made") }, 200, 4},
		{func(c *gin.Context) { c.Status(http.StatusOK); c.Status(http.StatusNoContent) }, 204, 0},
		{func(c *gin.Context) { c.AbortWithStatus(http.StatusConflict) }, 409, 0},
		{func(*gin.Context) {}, 200, 0},
	} {
		router := gin.New()
		report := func(c *gin.Context) {
			latchkeyhttp.HoldFrom(c.Request.Context()).Report(latchkey.Settlement{Credits: 1})
		}
		router.GET("/documents/:id", verify, report, each.handler)
		if asked := ask(router, "Bearer "+plainKey); !strings.HasPrefix(asked, fmt.Sprint(each.status, " ")) {
			t.Errorf("the answer is %q, not %d", asked, each.status)
		}
		if answer := <-answers; answer.Status != each.status || answer.Bytes != each.bytes {
			t.Errorf("%d bytes with status %d, not %d with %d", answer.Bytes, answer.Status, each.bytes, each.status)
		}
	}
}

// newKeys returns a new API, a key of it without an identity, credits and limits, and one that is valid once a day.
func TestLimitsAreJoinedWithHeadersOfTheHandler(t *testing.T) {
	client, err := latchkey.New()
	if err != nil {
		t.Fatal(err)
	}
	limit := latchkeygin.Ratelimit(client, latchkeyhttp.RatelimitOptions{
		Namespace: "gin joined", Limit: 100, Duration: time.Hour, Identifier: latchkeyhttp.ByAddress,
	})
	for name, handler := range map[string]gin.HandlerFunc{
		"status":  func(c *gin.Context) { c.Status(http.StatusNoContent) },
		"written": func(c *gin.Context) { c.String(http.StatusOK, "hello") },
		"flushed": func(c *gin.Context) { c.Writer.Flush() },
		"aborted": func(c *gin.Context) { c.AbortWithStatus(http.StatusConflict) },
	} {
		router := gin.New()
		router.GET("/", limit, func(c *gin.Context) { c.Header("RateLimit", `"own";r=5`) }, handler)
		response := httptest.NewRecorder()
		router.ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/", nil))
		if header := response.Result().Header.Get("RateLimit"); !strings.HasPrefix(header, `"gin%20joined";r=`) || !strings.HasSuffix(header, `, "own";r=5`) {
			t.Errorf("%s: %s", name, header)
		}
		if isFlushed := name == "flushed"; response.Flushed != isFlushed {
			t.Errorf("%s: flushed is %t", name, response.Flushed)
		}
	}
}

func newKeys(client *latchkey.Client) (apiID, plainKey, limitedKey string) {
	ctx := context.Background()
	api, err := client.APIs.CreateAPI(ctx, latchkey.CreateAPIInput{Name: "documents"})
	if err != nil {
		log.Fatal(err)
	}
	plain, err := client.Keys.CreateKey(ctx, latchkey.CreateKeyInput{APIID: api.Data.APIID})
	if err != nil {
		log.Fatal(err)
	}
	limited, err := client.Keys.CreateKey(ctx, latchkey.CreateKeyInput{
		APIID:      api.Data.APIID,
		ExternalID: latchkey.Ptr("user_1"),
		Ratelimits: []latchkey.CreateKeyInputRatelimit{
			{Name: "requests", Limit: 1, Duration: 86_400_000, AutoApply: latchkey.Ptr(true)},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	return api.Data.APIID, plain.Data.Key.Reveal(), limited.Data.Key.Reveal()
}

// ask returns the status of an answer, and its text.
func ask(handler http.Handler, authorization string) string {
	request := httptest.NewRequest(http.MethodGet, "/documents/7", nil)
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, request)
	text := strings.TrimSpace(response.Body.String())
	var rejection struct{ Error struct{ Detail string } }
	if json.Unmarshal(response.Body.Bytes(), &rejection) == nil {
		text = rejection.Error.Detail
	}
	return fmt.Sprint(response.Code, " ", text)
}
