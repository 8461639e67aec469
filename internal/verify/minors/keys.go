package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"

	"k8s.io/kubernetes/pkg/credentialprovider"
)

// checkKeys holds the table by which render/mirrors decides to this kubelet, which reads each entry from a config.json.
func checkKeys(words []string) error {
	directory, err := os.MkdirTemp("", "minors")
	if err != nil {
		return err
	}
	defer os.RemoveAll(directory)
	var differences []error
	for ; len(words) >= 3; words = words[3:] {
		data, err := json.Marshal(map[string]any{"auths": map[string]any{words[0]: map[string]string{"auth": base64.StdEncoding.EncodeToString([]byte("user:" + words[0]))}}})
		if err == nil {
			err = os.WriteFile(filepath.Join(directory, "config.json"), data, 0o600)
		}
		if err != nil {
			return err
		}
		config, err := credentialprovider.ReadDockerConfigJSONFile([]string{directory})
		if err != nil {
			return err
		}
		keyring := &credentialprovider.BasicDockerKeyring{}
		// Since 1.33 there is a source before the configuration.
		add := reflect.ValueOf(keyring).MethodByName("Add")
		arguments := []reflect.Value{reflect.ValueOf(config)}
		if add.Type().NumIn() > 1 {
			arguments = append([]reflect.Value{reflect.Zero(add.Type().In(0))}, arguments...)
		}
		add.Call(arguments)
		list, found := keyring.Lookup(words[1])
		if found != (words[2] == "yes") || found && (len(list) != 1 || list[0].Username != "user" || list[0].Password != words[0] || list[0].ServerAddress != "") {
			differences = append(differences, fmt.Errorf("%s for %s: the kubelet has %d credentials", words[0], words[1], len(list)))
		}
	}
	return errors.Join(differences...)
}
