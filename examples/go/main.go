// An app in plain Go, standard library only: launch, user, operation, approval, upload in chunks.
//
//	PLATFORM_URL=http://127.0.0.1:4010 PLATFORM_API_KEY=... PORT=5000 go run main.go
package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	poll      = 2500 * time.Millisecond // spec 4.8, rule 2: every 2 to 5 s
	tries     = 5
	partBytes = 1000
)

var (
	base   = os.Getenv("PLATFORM_URL") + "/public/external-app"
	key    = os.Getenv("PLATFORM_API_KEY")
	client = &http.Client{Timeout: 30 * time.Second}
)

// errNoAnswer: nothing came, or nothing good, in all tries. Every other error is a refusal, which asking again would not change.
var errNoAnswer = errors.New("no answer")

// session is one launch. Its token is renewed when it ends; a renewal may give another one.
type session struct{ token string }

type fields map[string]any

func (s *session) once(method, path string, body []byte, headers map[string]string) (*http.Response, fields, error) {
	address := base + strings.ReplaceAll(path, "{token}", url.PathEscape(s.token))
	request, err := http.NewRequest(method, address, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set("X-API-KEY", key)
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, nil, err
	}
	answer := fields{}
	if response.StatusCode < 300 {
		err = json.Unmarshal(text, &answer)
	}
	return response, answer, err
}

// call repeats what the world did: no answer, 5xx, 429. It renews the token once, and then says no.
func (s *session) call(method, path string, body []byte, headers map[string]string, tries int) (fields, error) {
	renewed := false
	for attempt := 0; attempt < tries; attempt++ {
		wait := 200 * time.Millisecond << attempt
		response, answer, err := s.once(method, path, body, headers)
		switch {
		case err != nil: // cut, refused, or half an answer
		case response.StatusCode < 300:
			return answer, nil
		case response.StatusCode == 403 && !renewed:
			renewed = true
			if err := s.renew(); err != nil {
				return nil, err
			}
			continue
		case response.StatusCode < 500 && response.StatusCode != 429:
			return nil, fmt.Errorf("%s %s: %d", method, path, response.StatusCode)
		default:
			if asked, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
				if asked := time.Duration(asked) * time.Second; asked > wait {
					wait = asked
				}
			}
		}
		time.Sleep(wait)
	}
	return nil, fmt.Errorf("%s %s: %w in %d tries", method, path, errNoAnswer, tries)
}

func (s *session) renew() error {
	response, answer, err := s.once("POST", "/token/{token}/renew", nil, nil)
	if err != nil {
		return nil // the next try renews again
	}
	if response.StatusCode >= 300 {
		return fmt.Errorf("the session is over: %d", response.StatusCode)
	}
	if token, ok := answer["token"].(string); ok {
		s.token = token
	}
	return nil
}

func (s *session) post(path string, body fields, headers map[string]string) (fields, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	all := map[string]string{"content-type": "application/json"}
	for name, value := range headers {
		all[name] = value
	}
	return s.call("POST", path, text, all, tries)
}

// decision makes one call each interval, and none after the decision. A call that failed is made up for by the next.
func (s *session) decision(operationID string) (string, error) {
	for {
		time.Sleep(poll)
		answer, err := s.call("GET", "/operation/{token}?operationId="+url.QueryEscape(operationID), nil, nil, 1)
		if errors.Is(err, errNoAnswer) {
			continue
		}
		if err != nil {
			return "", err
		}
		if status, _ := answer["status"].(string); status != "REQUESTED" {
			return status, nil
		}
	}
}

func (s *session) upload(operationID, name string, content []byte) error {
	begun, err := s.post("/file/{token}/upload/initiate", fields{"operationId": operationID, "fileName": name}, nil)
	if err != nil {
		return err
	}
	for start, number := 0, 1; start < len(content); start, number = start+partBytes, number+1 {
		end := start + partBytes
		if end > len(content) {
			end = len(content)
		}
		part := content[start:end]
		// The same bytes of the same part again change nothing: a chunk may be repeated.
		var form bytes.Buffer
		writer := multipart.NewWriter(&form)
		for field, value := range map[string]any{"uploadId": begun["uploadId"], "key": begun["key"], "partNumber": number} {
			writer.WriteField(field, fmt.Sprint(value))
		}
		file, err := writer.CreateFormFile("file", "part")
		if err != nil {
			return err
		}
		file.Write(part)
		writer.Close()
		headers := map[string]string{"content-type": writer.FormDataContentType()}
		if _, err := s.call("POST", "/file/{token}/upload/chunk", form.Bytes(), headers, tries); err != nil {
			return err
		}
	}
	whole := fields{"uploadId": begun["uploadId"], "key": begun["key"], "fileSize": len(content), "sourceType": "UNKNOWN"}
	_, err = s.post("/file/{token}/upload/complete", whole, nil)
	return err
}

func (s *session) work() error {
	if _, err := s.call("GET", "/user/{token}/detail", nil, nil, tries); err != nil {
		return err
	}
	random := make([]byte, 16)
	rand.Read(random)
	// The same key, launch and body give the same operation again: a lost answer makes no second one.
	wanted := fields{"name": "A report", "description": "Writes a report.", "parameters": fields{"lines": 100}}
	operation, err := s.post("/operation/{token}", wanted, map[string]string{"Idempotency-Key": hex.EncodeToString(random)})
	if err != nil {
		return err
	}
	id := fmt.Sprint(operation["operationId"])
	if status, err := s.decision(id); err != nil || status != "APPROVED" {
		return err
	}
	var report strings.Builder // the work: only now
	for line := 0; line < 100; line++ {
		fmt.Fprintf(&report, "%d,%d\n", line, line*line)
	}
	return s.upload(id, "report.csv", []byte(report.String()))
}

func main() {
	port := os.Getenv("PORT")
	if port == "" {
		port = "5000"
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Printf("app ready http://%s\n", listener.Addr())
	http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("content-type", "text/html")
		w.Header().Set("referrer-policy", "no-referrer")
		fmt.Fprint(w, "<title>Report</title><p>Approve the report in the platform.")
		if token := r.URL.Query().Get("token"); token != "" {
			go func() {
				if err := (&session{token}).work(); err != nil {
					fmt.Println(err)
				}
			}()
		}
	}))
}
