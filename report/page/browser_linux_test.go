package page

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// browser is a headless Chromium that is told what to do over two pipes (--remote-debugging-pipe: JSON messages that end with a zero byte),
// so that nothing listens anywhere.
type browser struct {
	t       *testing.T
	out     *bufio.Reader
	in      io.Writer
	session string
	last    int
	// complaints are messages of the console and violations of the page's policy.
	complaints []string
}

// message is what both sides send.
type message struct {
	ID      int             `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

// openBrowser opens a page in Chromium, or skips the test where it is not installed.
func openBrowser(t *testing.T, text string) *browser {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed: make test-with-programs installs it")
	}
	file := filepath.Join(t.TempDir(), "page.html")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	theirIn, in, err := os.Pipe()
	must(t, err)
	out, theirOut, err := os.Pipe()
	must(t, err)
	profile := browserProfile(t)
	cmd := exec.CommandContext(t.Context(), program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
		"--user-data-dir="+profile, "--remote-debugging-pipe", "about:blank")
	cmd.Env = append(os.Environ(), "TMPDIR="+profile) // it leaves folders there
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.ExtraFiles = []*os.File{theirIn, theirOut} // descriptors 3 and 4
	must(t, cmd.Start())
	b := &browser{t: t, out: bufio.NewReader(out), in: in}
	t.Cleanup(func() {
		// It ends without an answer. How it ends is not what is tested.
		_, _ = io.WriteString(in, `{"id":0,"method":"Browser.close"}`+"\x00")
		_ = cmd.Wait()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // its helpers outlive it
	})
	must(t, theirIn.Close())
	must(t, theirOut.Close())
	must(t, out.SetReadDeadline(time.Now().Add(2*time.Minute)))
	b.attach()
	b.do("Page.navigate", map[string]any{"url": "file://" + file})
	b.until("document.readyState == 'complete' && document.title != ''")
	return b
}

// browserProfile returns a folder for Chromium. Its helpers may still write into it when it has ended.
func browserProfile(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "wmco-chromium-") //nolint:usetesting // it is removed in several tries
	must(t, err)
	t.Cleanup(func() {
		for range 50 {
			if err = os.RemoveAll(folder); err == nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Error(err)
	})
	return folder
}

// attach makes a page of its own, which reports what its console says.
func (b *browser) attach() {
	var target struct{ TargetID string }
	must(b.t, json.Unmarshal(b.do("Target.createTarget", map[string]any{"url": "about:blank"}), &target))
	var attached struct{ SessionID string }
	must(b.t, json.Unmarshal(b.do("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}), &attached))
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Audits"} {
		b.do(domain+".enable", nil)
	}
}

// do calls a method and returns its result. Events that come before are kept if they are complaints.
func (b *browser) do(method string, params any) json.RawMessage {
	b.t.Helper()
	b.last++
	text, err := json.Marshal(message{ID: b.last, Method: method, Params: params, Session: b.session})
	must(b.t, err)
	_, err = b.in.Write(append(text, 0))
	must(b.t, err)
	for {
		line, err := b.out.ReadBytes(0)
		if err != nil {
			b.t.Fatalf("%s: %v", method, err)
		}
		var m message
		must(b.t, json.Unmarshal(line[:len(line)-1], &m))
		switch {
		case m.ID == b.last && len(m.Error) > 0:
			b.t.Fatalf("%s: %s", method, m.Error)
		case m.ID == b.last:
			return m.Result
		case m.Method == "Runtime.consoleAPICalled", m.Method == "Runtime.exceptionThrown", m.Method == "Log.entryAdded", m.Method == "Audits.issueAdded":
			b.complaints = append(b.complaints, string(line[:len(line)-1]))
		}
	}
}

// eval returns the value of an expression in the page.
func (b *browser) eval(expression string) any {
	b.t.Helper()
	var answer struct {
		Result struct{ Value any }
		// ExceptionDetails is why there is none.
		ExceptionDetails json.RawMessage
	}
	must(b.t, json.Unmarshal(b.do("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}), &answer))
	if answer.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, answer.ExceptionDetails)
	}
	return answer.Result.Value
}

// holds reports whether an expression is true in the page.
func (b *browser) holds(expression string) bool {
	b.t.Helper()
	is, _ := b.eval(expression).(bool)
	return is
}

func (b *browser) until(expression string) {
	b.t.Helper()
	for range 600 {
		if b.holds(expression) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	b.t.Fatalf("%s is not true", expression)
}

// press presses a key and releases it.
func (b *browser) press(key string, code int) {
	b.t.Helper()
	for _, kind := range []string{"rawKeyDown", "char", "keyUp"} {
		p := map[string]any{"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code}
		if kind == "char" {
			if key != "Enter" {
				continue
			}
			p["text"] = "\r"
		}
		b.do("Input.dispatchKeyEvent", p)
	}
}

// size gives the window a size.
func (b *browser) size(width, height int) {
	b.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false})
}

// media tells the page what it is shown on.
func (b *browser) media(medium, scheme string) {
	b.do("Emulation.setEmulatedMedia", map[string]any{"media": medium, "features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}})
}

// check fails if the browser complains about the page.
func (b *browser) check(name string) {
	b.t.Helper()
	b.eval("0") // what was reported before is read now
	for _, c := range b.complaints {
		b.t.Errorf("%s: the browser says %.600s", name, c)
	}
}

// picture writes the page as an image for the documents, where WMCO_PICTURES names a folder: `make pictures`.
func (b *browser) picture(name string) {
	b.t.Helper()
	folder := os.Getenv("WMCO_PICTURES")
	if folder == "" || name != "diff" && name != "status" { // the documents show the others
		return
	}
	b.size(1000, 760)
	var image struct{ Data []byte }
	must(b.t, json.Unmarshal(b.do("Page.captureScreenshot", map[string]any{"format": "png"}), &image))
	must(b.t, os.WriteFile(filepath.Join(folder, "page-"+name+".png"), image.Data, 0o644))
}

const (
	tabKey   = 9
	enterKey = 13
)

// TestPagesInABrowser opens pages in Chromium: its console says nothing, the keyboard reaches and opens every part, the page is dark where that
// is preferred, fits narrow windows, and is printed with all of its texts.
func TestPagesInABrowser(t *testing.T) {
	list := pages(t)
	list["mirrors"] = mirrorsPage(1000, 200)
	for name, p := range list {
		t.Run(name, func(t *testing.T) {
			b := openBrowser(t, htmlOf(t, p))
			b.size(1280, 900)
			light := b.eval(`getComputedStyle(document.body).backgroundColor`)
			b.media("screen", "dark")
			if dark := b.eval(`getComputedStyle(document.body).backgroundColor`); light != "rgb(255, 255, 255)" || dark == light {
				t.Errorf("the page is %v, and %v where dark is preferred", light, dark)
			}
			b.media("screen", "light")
			for _, width := range []int{1280, 380} {
				b.size(width, 900)
				if wide := b.eval(`document.documentElement.scrollWidth - window.innerWidth`); wide.(float64) > 0 {
					t.Errorf("in a window of %d pixels, the page is %v pixels too wide", width, wide)
				}
			}
			b.picture(name)
			b.checkKeyboard()
			b.checkLinks()
			b.checkCauses()
			b.checkPrinted()
			b.check(name)
		})
	}
}

// checkKeyboard goes through the page with Tab, and opens the first closed part with Enter.
func (b *browser) checkKeyboard() {
	b.t.Helper()
	for range 200 {
		b.press("Tab", tabKey)
		if b.holds(`document.activeElement.tagName == 'SUMMARY' && !document.activeElement.parentElement.open`) {
			b.press("Enter", enterKey)
			if !b.holds(`document.activeElement.parentElement.open`) {
				b.t.Error("Enter does not open a part")
			}
			return
		}
	}
	b.t.Error("Tab reaches no closed part")
}

// checkLinks follows the last link to a part that is inside another one: it is shown.
func (b *browser) checkLinks() {
	b.t.Helper()
	if b.holds(`document.querySelector('#causes li a') == null`) {
		return
	}
	b.eval(`[...document.querySelectorAll('#causes details')].forEach(d => d.open = true); [...document.querySelectorAll('#causes li a')].at(-1).click()`)
	b.until(`document.querySelector(':target') != null && document.querySelector(':target').getBoundingClientRect().height > 0`)
}

// checkCauses looks at the picture of which object causes what: every text is inside its box, it is dark where the page is, the keyboard reaches
// its boxes, shows where it is and what follows from that, and Enter goes to a part that is shown then.
func (b *browser) checkCauses() {
	b.t.Helper()
	if b.holds(`document.querySelector('#causes') == null`) {
		return
	}
	if n := b.eval(`[...document.querySelectorAll('svg.causes .part')].filter(g => { const r = g.querySelector('rect').getBBox(), t = g.querySelector('text').getBBox(); return t.x < r.x || t.x + t.width > r.x + r.width || t.y < r.y || t.y + t.height > r.y + r.height }).length`); n != 0.0 {
		b.t.Errorf("%v texts are not inside their boxes", n)
	}
	const ground = `getComputedStyle(document.querySelector('svg.causes rect')).fill + getComputedStyle(document.querySelector('svg.causes a text')).fill`
	light := b.eval(ground)
	b.media("screen", "dark")
	if dark := b.eval(ground); dark == light {
		b.t.Errorf("the picture is %v where dark is preferred, too", dark)
	}
	b.media("screen", "light")
	b.checkNames()
	b.eval(`document.querySelectorAll('#causes details').forEach(d => d.open = false); document.querySelector('#causes h2').tabIndex = -1; document.querySelector('#causes h2').focus()`)
	b.press("Tab", tabKey)
	for range 3 { // what can be scrolled is reached as well
		if !b.holds(`document.activeElement.matches('svg.causes a')`) {
			b.press("Tab", tabKey)
		}
	}
	if !b.holds(`document.activeElement.matches('svg.causes a')`) {
		b.t.Fatalf("Tab reaches no box of the picture, but %v", b.eval(`document.activeElement.outerHTML.slice(0, 200)`))
	}
	if !b.holds(`getComputedStyle(document.activeElement.querySelector('rect')).strokeWidth == '4px' && getComputedStyle(document.activeElement.parentElement.querySelector('.arrow')).strokeWidth == '2.5px'`) {
		b.t.Error("the box that has the focus looks like the others")
	}
	b.press("Enter", enterKey)
	b.until(`document.querySelector(':target') != null && document.querySelector(':target').getBoundingClientRect().height > 0`)
	if at := b.eval(`'#' + document.querySelector(':target').id`); at != b.eval(`document.querySelector('svg.causes a').getAttribute('href')`) {
		b.t.Errorf("Enter on the first box leads to %v", at)
	}
}

// checkNames fails if who cannot see the picture does not learn what it is, and where each box leads.
func (b *browser) checkNames() {
	b.t.Helper()
	type text struct{ Value any }
	var tree struct {
		Nodes []struct{ Role, Name, Description text }
	}
	must(b.t, json.Unmarshal(b.do("Accessibility.getFullAXTree", nil), &tree))
	said := map[string]string{}
	for _, n := range tree.Nodes {
		if n.Name.Value != nil && n.Role.Value != nil {
			said[fmt.Sprint(n.Role.Value, " ", n.Name.Value)] = fmt.Sprint(n.Description.Value)
		}
	}
	title, _ := b.eval(`document.querySelector('svg.causes title').textContent`).(string)
	if text := said["group "+title]; !strings.Contains(text, "On the left") {
		b.t.Errorf("the picture %q is described as %q", title, text)
	}
	names, _ := b.eval(`[...document.querySelectorAll('svg.causes a title')].map(t => t.textContent)`).([]any)
	for _, name := range names {
		if _, ok := said[fmt.Sprint("link ", name)]; !ok {
			b.t.Errorf("no link is called %q", name)
		}
	}
	if len(names) == 0 {
		b.t.Error("the picture has no links")
	}
}

// checkPrinted fails if a picture is larger than the paper, or parts are closed on it.
func (b *browser) checkPrinted() {
	b.t.Helper()
	b.size(794, 1123) // A4
	b.media("print", "light")
	if hidden := b.eval(`[...document.querySelectorAll('details')].filter(d => d.getBoundingClientRect().height > 0 && [...d.children].some(c => c.getBoundingClientRect().height == 0 && c.textContent.trim() != '')).length`); hidden != 0.0 {
		b.t.Errorf("%v parts are not printed", hidden)
	}
	if cut := b.eval(`[...document.querySelectorAll('svg')].filter(s => s.getBoundingClientRect().height > innerHeight || s.getBoundingClientRect().right > innerWidth).length`); cut != 0.0 {
		b.t.Errorf("%v pictures do not fit the paper", cut)
	}
}

// TestABrowserComplains: what the test above looks for is found.
func TestABrowserComplains(t *testing.T) {
	text := strings.Replace(htmlOf(t, Page{Title: "x"}), "</main>", `<img src="https://example.com/x.png"></main>`, 1)
	b := openBrowser(t, text)
	for end := time.Now().Add(2 * time.Minute); len(b.complaints) == 0 && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		b.eval("0")
	}
	if len(b.complaints) == 0 {
		t.Error("an image that the policy forbids is no complaint")
	}
}
