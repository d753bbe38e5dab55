package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"felix.dev/felix/broker/admin"
)

// scrape reads metrics without labels from a broker's admin side.
func scrape(ctx context.Context, c *admin.Client, names ...string) (map[string]float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.BaseURL+"/metrics", http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("bench: metrics: %w", err)
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return nil, fmt.Errorf("bench: metrics: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("bench: metrics: %s", resp.Status)
	}
	return parseMetrics(resp.Body, names...)
}

// parseMetrics finds the values of metrics without labels in the text format.
func parseMetrics(r io.Reader, names ...string) (map[string]float64, error) {
	found := map[string]float64{}
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		name, value, ok := strings.Cut(s.Text(), " ")
		if !ok {
			continue
		}
		for _, n := range names {
			if n == name {
				v, err := strconv.ParseFloat(value, 64)
				if err != nil {
					return nil, fmt.Errorf("bench: metric %s: %w", name, err)
				}
				found[n] = v
			}
		}
	}
	return found, s.Err()
}
