package signatures

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
)

// answerVariable has the test program be image-verifier, and say what it has.
const answerVariable = "WMCO_TEST_ANSWER"

func TestMain(m *testing.M) {
	text, is := os.LookupEnv(answerVariable)
	if !is {
		os.Exit(m.Run())
	}
	if text == "asked" {
		err := AnswerQuestion(os.Stdin, os.Stdout, func(q Question) (Answer, error) {
			return Answer{Accepted: q.Image == "a.io/app:v1", Reason: os.Args[1]}, nil
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if after, fails := strings.CutPrefix(text, "fails: "); fails {
		fmt.Fprint(os.Stderr, after)
		os.Exit(1)
	}
	if text == "much" {
		text = `{"schema":1,"accepted":true,"reason":"` + strings.Repeat("x", 2*maxAnswer) + `"}`
	}
	fmt.Print(text)
}

// TestOnlyAWholeAnswerCounts: whatever else the program does, an image is not accepted.
func TestOnlyAWholeAnswerCounts(t *testing.T) {
	for text, want := range map[string]string{
		"asked":                                 "",
		"fails: no room":                        "no room",
		"":                                      "its answer is not one",
		"yes":                                   "its answer is not one",
		`{"schema":2,"accepted":true}`:          "its answer is not one",
		`{"accepted":true}`:                     "its answer is not one",
		`{"schema":1,"accepted":true} and more`: "its answer is not one",
		"much":                                  "its answer is not one",
	} {
		t.Setenv(answerVariable, text)
		a, err := Program{Path: os.Args[0], Folder: "folder"}.Ask(t.Context(), Question{Image: "a.io/app:v1"})
		switch {
		case want == "" && (err != nil || !a.Accepted || a.Reason != "folder"):
			t.Errorf("%.40s: accepted %t for %.40q: %.200v", text, a.Accepted, a.Reason, err)
		case want != "" && (err == nil || a.Accepted || !strings.Contains(err.Error(), want)):
			t.Errorf("%.40s: accepted %t for %.40q: %.200v", text, a.Accepted, a.Reason, err)
		}
	}
	t.Setenv(answerVariable, "asked")
	if a, err := (Program{Path: os.Args[0], Folder: "folder"}).Ask(t.Context(), Question{Image: "a.io/other:v1"}); err != nil || a.Accepted {
		t.Errorf("another image: %+v, %v", a, err)
	}
	ended, stop := context.WithCancel(t.Context())
	stop()
	if a, err := (Program{Path: os.Args[0], Folder: "folder"}).Ask(ended, Question{}); err == nil || a.Accepted {
		t.Errorf("a pull that has ended: %+v, %v", a, err)
	}
}
