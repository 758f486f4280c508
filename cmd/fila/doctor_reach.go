package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"fila/config"
)

// reachable is how long an address may take to answer.
const reachable = 5 * time.Second

// address is a URL of the configuration that turns will need.
type address struct {
	key, url string
	demo     bool
}

// addresses lists what the projects call, by project.
func addresses(settings *config.Config) []address {
	var all []address
	for _, name := range sortedProjects(settings) {
		p := settings.Projects[name]
		at := "projects." + name
		all = append(all,
			address{at + ".agent.url", p.Agent.URL, hasDemoAgent(p)},
			address{at + ".agent.reconcile_url", p.Agent.ReconcileURL, false},
			address{at + ".delivery.url", p.Delivery.URL, false},
			address{at + ".delivery.reconcile_url", p.Delivery.ReconcileURL, false},
			address{at + ".media_text.url", p.MediaText.URL, false})
	}
	return all
}

// examineAddresses asks all of them at once whether anybody is there.
func examineAddresses(ctx context.Context, settings *config.Config, found *checkup) {
	all := addresses(settings)
	findings := make([]checkup, len(all))
	client := &http.Client{
		Timeout:       reachable,
		Transport:     &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	var asked sync.WaitGroup
	for i, a := range all {
		if a.url != "" {
			asked.Go(func() { a.examine(ctx, client, &findings[i]) })
		}
	}
	asked.Wait()
	for _, f := range findings {
		*found = append(*found, f...)
	}
}

func (a address) examine(ctx context.Context, client *http.Client, found *checkup) {
	err := knock(ctx, client, a.url)
	switch {
	case err == nil:
		found.add(fine, "reach", "%s answers", a.key)
	case a.demo:
		found.add(warning, "reach", "%s is the demo agent, which answers while fila serve runs: %s", a.key, err)
	default:
		found.add(failing, "reach", "%s does not answer: %s; start what it names, or correct the key", a.key, err)
	}
}

// knock makes a request that does nothing: HEAD, else OPTIONS. Never a turn. Any status is an answer. The error names neither
// address nor credentials, which a URL may hold.
func knock(ctx context.Context, client *http.Client, url string) error {
	var err error
	for _, method := range []string{http.MethodHead, http.MethodOptions} {
		var request *http.Request
		var response *http.Response
		if request, err = http.NewRequestWithContext(ctx, method, url, http.NoBody); err != nil {
			return errors.New("it is no URL")
		}
		if response, err = client.Do(request); err == nil {
			return response.Body.Close()
		}
	}
	return trouble(err)
}

// trouble is a network error without the URL that it happened to.
func trouble(err error) error {
	var network *net.OpError
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	var whole *url.Error
	switch {
	case errors.As(err, &certificate):
		return fmt.Errorf("its certificate is not accepted: %w", certificate.Err)
	case errors.As(err, &name):
		return fmt.Errorf("the name %s is not found", name.Name)
	case errors.As(err, &whole) && whole.Timeout():
		return fmt.Errorf("no answer within %s", age(reachable))
	case errors.As(err, &network):
		return fmt.Errorf("%s: %w", network.Op, network.Err)
	case errors.As(err, &whole):
		return whole.Err
	}
	return err
}
