package gather

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// The longest names, in characters of UTF-16: of a local or domain account, which is its sAMAccountName
// (learn.microsoft.com/windows/win32/adschema/a-samaccountname), and of a user principal name or a domain with an
// account (secext.h, UNLEN is 256).
const (
	maxAccount  = 20
	maxUsername = 256
)

// notInAccounts are the characters that no account name has (the page of sAMAccountName). The at sign begins the domain
// of a user principal name.
const notInAccounts = `"/\[]:;|=,+*?<>@`

// checkAccount returns an error for a name that no Windows account can have, in one of its three forms: user,
// DOMAIN\user and user@domain. Which of the others exist, only the host knows. A name that begins with a dash would be an
// option of ssh in a command that a person types or copies. The messages show no text of the name but the character
// that is wrong.
func checkAccount(name string) error {
	if !utf8.ValidString(name) {
		return errors.New("the user name is not UTF-8")
	}
	for _, r := range name {
		if !unicode.IsPrint(r) { // format characters change the order of others or show nothing
			return fmt.Errorf("the user name has the character %U, which is a control character or shows as nothing", r)
		}
	}
	switch {
	case utf16Length(name) > maxUsername:
		return fmt.Errorf(
			"the user name has %d characters, and an account with its domain has at most %d characters",
			utf16Length(name), maxUsername,
		)
	case strings.HasPrefix(name, "-"):
		return errors.New("the user name begins with -, which ssh takes for an option")
	}
	if domain, user, ok := strings.Cut(name, `\`); ok {
		return cmp.Or(checkDomain(domain), checkUser(user))
	}
	if user, domain, ok := strings.Cut(name, "@"); ok {
		return cmp.Or(checkAccountPart("account", user), checkBlanks("account", user), checkDomain(domain))
	}
	return checkUser(name)
}

// checkUser checks the name of an account without a domain, which may have blanks inside.
func checkUser(user string) error {
	if n := utf16Length(user); n > maxAccount {
		return fmt.Errorf("the account in the user name has %d characters, and Windows allows at most %d characters", n, maxAccount)
	}
	if strings.Trim(user, " ") != user {
		return errors.New("the account in the user name begins or ends with a blank")
	}
	return checkAccountPart("account", user)
}

func checkDomain(domain string) error {
	if domain == "." { // this host
		return nil
	}
	return cmp.Or(checkAccountPart("domain", domain), checkBlanks("domain", domain))
}

// checkAccountPart checks what holds for accounts and domains.
func checkAccountPart(part, name string) error {
	if name == "" {
		return fmt.Errorf("the %s in the user name is empty", part)
	}
	if strings.Trim(name, ". ") == "" {
		return fmt.Errorf("the %s in the user name has only dots and blanks", part)
	}
	if i := strings.IndexAny(name, notInAccounts); i >= 0 {
		return fmt.Errorf("the %s in the user name has %q, which no Windows account has", part, rune(name[i]))
	}
	return nil
}

func checkBlanks(part, name string) error {
	if strings.Contains(name, " ") {
		return fmt.Errorf("the %s in the user name has a blank", part)
	}
	return nil
}

// utf16Length returns the number of UTF-16 characters, as Windows counts.
func utf16Length(name string) int { return len(utf16.Encode([]rune(name))) }
