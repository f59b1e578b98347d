// A receiver for a hub's notifications, with Go's standard library.
//
//	SECRET=… TOPIC=… PORT=9000 go run go_receiver.go
//
// Put your own code into work. docs/how-to/receivers.md says what the rest does, and why.
package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"time"
)

var (
	secret = required("SECRET") // of the subscription
	topic  = required("TOPIC")  // what is subscribed to
	hub    = os.Getenv("HUB")   // its URL; without it nothing is asked of the hub
	token  = os.Getenv("TOKEN") // of the account, with the scope retrieve
	folder = optional("FOLDER", "received")
	inbox  = filepath.Join(folder, "inbox")
	done   = filepath.Join(folder, "done")
	last   = filepath.Join(folder, "last")

	safeID = regexp.MustCompile(`^[\w-]+$`)
	logID  = regexp.MustCompile(`^\w+-(\d+)-\d+$`) // EPOCH-POSITION-SUBSCRIPTION
	client = http.Client{Timeout: 30 * time.Second}
)

type item struct {
	ID    string `json:"id"`
	Title string `json:"title"`
}

type document struct {
	Status struct {
		HTTP string `json:"http"`
	} `json:"status"`
	Items *[]item `json:"items"`
}

// What your program does with one entry. It may get one twice: keep it by its id, so
// that the second time changes nothing.
func work(each item) error {
	fmt.Println("entry", each.ID, each.Title)
	return nil
}

// The hub asks whether this subscription is meant, or says that it has ended.
func confirm(query url.Values) (int, string) {
	if query.Get("hub.topic") != topic {
		return http.StatusNotFound, "not subscribed to this topic"
	}
	if query.Get("hub.mode") == "denied" {
		fmt.Println("ended:", query.Get("hub.reason"))
	}
	return http.StatusOK, query.Get("hub.challenge")
}

// Keep a notification, once, and answer; the worker does the rest.
func take(header http.Header, body []byte) (int, string) {
	id := header.Get("webhook-id")
	if !isGenuine(header, body, secret) || !safeID.MatchString(id) {
		return http.StatusForbidden, "the signature is wrong"
	}
	if _, err := os.Stat(filepath.Join(done, id)); err == nil {
		return http.StatusNoContent, ""
	}
	content := append([]byte(header.Get("fanfare-missed")+"\n"), body...)
	if err := write(filepath.Join(inbox, id), content); err != nil {
		return http.StatusServiceUnavailable, err.Error()
	}
	return http.StatusNoContent, ""
}

// body: the bytes as they came
func isGenuine(header http.Header, body []byte, secret string) bool {
	id, at := header.Get("webhook-id"), header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || math.Abs(float64(time.Now().Unix()-seconds)) > 300 {
		return false
	}
	key := []byte(secret)
	if strings.HasPrefix(secret, "whsec_") {
		if key, err = base64.StdEncoding.DecodeString(secret[6:]); err != nil {
			return false
		}
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, at, body)
	expected := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for _, given := range strings.Fields(header.Get("webhook-signature")) {
		if hmac.Equal([]byte(given), []byte(expected)) {
			return true
		}
	}
	return false
}

// All of it or nothing, and on the disk before the hub is answered.
func write(path string, content []byte) error {
	file, err := os.CreateTemp(folder, "writing")
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err = file.Write(content); err != nil {
		return err
	}
	if err = file.Sync(); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

func workForever() {
	before := ""
	if hub != "" {
		before = readLast()
	}
	for {
		before = resume(before)
		if err := workOnAll(); err != nil { // it stays in the inbox, and so its order
			fmt.Println("tried again in 5 s:", err)
			time.Sleep(5 * time.Second)
		}
		if before != "" {
			time.Sleep(5 * time.Second)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func readLast() string {
	content, err := os.ReadFile(last)
	if err != nil {
		return ""
	}
	return string(content)
}

// Ask for what came after the last notification that was here at the start; "" once that
// is done. The hub remembers what was not taken; this is for what was taken and lost
// with a disk.
func resume(before string) string {
	if before == "" {
		return ""
	}
	subscription := before[strings.LastIndex(before, "-")+1:]
	body := fmt.Sprintf(`{"record": %d}`, positionOf(before)+1)
	var lag any
	err := ask("POST", "/api/subscriptions/"+subscription+"/replay", body, &lag)
	if err != nil {
		fmt.Println("could not resume, tried again in 5 s:", err)
		return before
	}
	return ""
}

func workOnAll() error {
	files, err := os.ReadDir(inbox)
	if err != nil {
		return err
	}
	sort.SliceStable(files, func(i, j int) bool {
		return positionOf(files[i].Name()) < positionOf(files[j].Name())
	})
	for _, each := range files {
		if err := workOn(each.Name()); err != nil {
			return err
		}
	}
	return nil
}

func workOn(id string) error {
	content, err := os.ReadFile(filepath.Join(inbox, id))
	if err != nil {
		return err
	}
	missed, body, _ := bytes.Cut(content, []byte("\n"))
	former := readLast()
	if former == "" {
		former = id
	}
	isOfLog := positionOf(id) > 0 // and not a test, for example
	isOtherEpoch := isOfLog && strings.Split(id, "-")[0] != strings.Split(former, "-")[0]
	if len(missed) > 0 || isOtherEpoch {
		// The hub no longer had these records, or was restored from a backup.
		if len(missed) == 0 {
			missed = []byte("a new epoch")
		}
		fmt.Println("gap", string(missed))
		if err := readBack(); err != nil {
			return err
		}
	}
	var found document
	if err := json.Unmarshal(body, &found); err != nil {
		return err
	}
	if err := workOnItems(found); err != nil {
		return err
	}
	if isOtherEpoch || (isOfLog && positionOf(id) >= positionOf(former)) {
		if err := write(last, []byte(id)); err != nil {
			return err
		}
	}
	return os.Rename(filepath.Join(inbox, id), filepath.Join(done, id))
}

// Oldest first.
func workOnItems(found document) error {
	if found.Items == nil {
		fmt.Println("the feed's status:", found.Status.HTTP)
		return nil
	}
	for i := len(*found.Items) - 1; i >= 0; i-- {
		if err := work((*found.Items)[i]); err != nil {
			return err
		}
	}
	return nil
}

func positionOf(id string) int {
	found := logID.FindStringSubmatch(id)
	if found == nil {
		return 0
	}
	position, _ := strconv.Atoi(found[1])
	return position
}

// The topic's newest entries, which are more than were missed, or all there are.
func readBack() error {
	if hub == "" {
		return nil
	}
	query := url.Values{"hub.mode": {"retrieve"}, "hub.topic": {topic},
		"count": {"50"}, "format": {"json"}}
	var found document
	if err := ask("GET", "/?"+query.Encode(), "", &found); err != nil {
		return err
	}
	return workOnItems(found)
}

func ask(method, path, body string, found any) error {
	request, err := http.NewRequest(method, hub+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode >= 300 {
		return fmt.Errorf("%s %s", answer.Status, content)
	}
	return json.Unmarshal(content, found)
}

func required(name string) string {
	value := os.Getenv(name)
	if value == "" {
		log.Fatal(name + " is to be given")
	}
	return value
}

func optional(name, value string) string {
	if given := os.Getenv(name); given != "" {
		return given
	}
	return value
}

func callback(response http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(response, request.Body, 64<<20))
	status, text := http.StatusRequestEntityTooLarge, "too large"
	if err == nil && request.Method == http.MethodPost {
		status, text = take(request.Header, body)
	} else if err == nil {
		status, text = confirm(request.URL.Query())
	}
	response.Header().Set("Content-Type", "text/plain; charset=utf-8")
	response.WriteHeader(status)
	io.WriteString(response, text)
}

func main() {
	for _, each := range []string{inbox, done} {
		if err := os.MkdirAll(each, 0o755); err != nil {
			log.Fatal(err)
		}
	}
	go workForever()
	server := http.Server{Addr: "127.0.0.1:" + optional("PORT", "9000"),
		Handler: http.HandlerFunc(callback), ReadTimeout: 30 * time.Second}
	log.Fatal(server.ListenAndServe())
}
