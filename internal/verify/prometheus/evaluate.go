package prometheus

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
)

// Line is a line of a graph, or the value of a single number at the end of the time.
type Line struct {
	Name   string
	Points []Point
}

// Point is a value at a time.
type Point struct {
	At    time.Time
	Value float64
}

// Evaluated is a panel with its lines.
type Evaluated struct {
	Panel
	Lines []Line
}

// errNoData means that a panel would be empty.
var errNoData = errors.New("the query has no data")

// Limits of a query.
const (
	maxSamples = 1_000_000
	queryLimit = time.Minute
	// step is between two points of a line.
	step = 2 * time.Minute
)

// Evaluate returns the panels of a dashboard between two times. All queries without data, or with values that are no
// numbers alone, are one error.
func Evaluate(ctx context.Context, d Dashboard, s storage.Queryable, begin, end time.Time) ([]Evaluated, error) {
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: maxSamples, Timeout: queryLimit})
	var all []Evaluated
	var failed []error
	for _, p := range d.Panels() {
		e := Evaluated{Panel: p}
		for _, t := range p.Targets {
			query, err := engine.NewRangeQuery(ctx, s, nil, t.Expr, begin, end, step)
			if err != nil {
				return nil, fmt.Errorf("reading the query %q of the panel %q: %w", t.Expr, p.Title, err)
			}
			lines, err := linesOf(query.Exec(ctx), t.Legend)
			query.Close()
			if err != nil {
				failed = append(failed, fmt.Errorf("evaluating %q of the panel %q: %w", t.Expr, p.Title, err))
			}
			e.Lines = append(e.Lines, lines...)
		}
		all = append(all, e)
	}
	return all, errors.Join(failed...)
}

func linesOf(result *promql.Result, legend string) ([]Line, error) {
	matrix, err := result.Matrix()
	if err != nil {
		return nil, err
	}
	var lines []Line
	for _, series := range matrix {
		line := Line{Name: legendOf(legend, series.Metric)}
		for _, p := range series.Floats {
			if !math.IsNaN(p.F) && !math.IsInf(p.F, 0) {
				line.Points = append(line.Points, Point{time.UnixMilli(p.T).UTC(), p.F})
			}
		}
		if len(line.Points) > 0 {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return nil, errNoData
	}
	slices.SortFunc(lines, func(a, b Line) int { return strings.Compare(a.Name, b.Name) })
	return lines, nil
}

var placeholder = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)

// legendOf fills in the labels of a series.
func legendOf(legend string, l labels.Labels) string {
	return placeholder.ReplaceAllStringFunc(legend, func(found string) string {
		return l.Get(placeholder.FindStringSubmatch(found)[1])
	})
}
