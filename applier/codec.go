package applier

import (
	"encoding/json"
	"fmt"

	"wmco/bundle"
)

// decodeAnswer decodes one JSON value of a node agent. Fields that a newer program of the same schema added are ignored.
func decodeAnswer(data []byte, what string, into any) error {
	if err := bundle.CheckSchema(data, what, Schema); err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("reading %s: %w", what, err)
	}
	return nil
}
