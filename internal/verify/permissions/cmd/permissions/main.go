// Permissions compares the operator's roles with the audit logs that tests have kept.
//
//	permissions ROLES LOGS PACKAGE...
//
// It exits with 1 if a permission is missing or not needed, and with 2 if a log is missing.
package main

import (
	"fmt"
	"os"

	"wmco/internal/verify/permissions"
)

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: permissions ROLES LOGS PACKAGE...")
		os.Exit(2)
	}
	wrong, requests, err := judgePermissions(os.Args[1], os.Args[2], os.Args[3:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "permissions:", err)
		os.Exit(2)
	}
	for _, text := range wrong {
		fmt.Fprintln(os.Stderr, text)
	}
	if len(wrong) > 0 {
		os.Exit(1)
	}
	fmt.Printf("the operator needs what it may, and may what it needs, in %d requests\n", requests)
}

func judgePermissions(roles, logs string, packages []string) (wrong []string, requests int, err error) {
	shipped, err := permissions.ReadShipped(roles)
	if err != nil {
		return nil, 0, err
	}
	asked, err := permissions.ReadLogs(logs, packages...)
	if err != nil {
		return nil, 0, err
	}
	return permissions.JudgePermissions(shipped, asked), len(asked), nil
}
