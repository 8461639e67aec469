package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"wmco/internal/test/payloadtest"
	"wmco/internal/test/registrytest"
)

// writePayload copies a payload of stand-ins, such as golden/payload, with other executables, each as NAME=FILE.
func writePayload(from, version, to string, others []string) error {
	contents := map[string][]byte{}
	for _, other := range others {
		name, file, ok := strings.Cut(other, "=")
		if !ok {
			return errUsage
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		contents[name] = data
	}
	return payloadtest.Write(from, to, version, contents)
}

// serveRegistry prints the name of the image with a payload, and serves it until it is interrupted.
func serveRegistry(ctx context.Context, address, folder string) error {
	s, err := registrytest.ServeImage(address, folder)
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Println(s.Image)
	<-ctx.Done()
	return nil
}
