// An OpenTelemetry Collector that receives profiles by OTLP/HTTP and writes them to two files.
//
// usage: serve DIR
//
// It is built from the collector's own modules, with the parts that the tests need: the OTLP receiver and the file
// exporter. It writes received messages to DIR/received.pb and DIR/received.json, and its address to DIR/address once
// it accepts connections. It ends on SIGTERM.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/featuregate"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// The system chooses a free port. Files are flushed often, since the tests wait for what is written.
const config = `yaml:
receivers:
  otlp:
    protocols:
      http:
        endpoint: 127.0.0.1:0
exporters:
  file/protobuf:
    path: %[1]q
    format: proto
    flush_interval: 10ms
  file/json:
    path: %[2]q
    format: json
    flush_interval: 10ms
service:
  pipelines:
    profiles:
      receivers: [otlp]
      exporters: [file/protobuf, file/json]
`

func main() {
	if len(os.Args) != 2 {
		fail("usage: serve DIR")
	}
	dir := os.Args[1]
	// Profiles are in development, so the collector accepts them only on request.
	if err := featuregate.GlobalRegistry().Set("service.profilesSupport", true); err != nil {
		fail(err)
	}
	collector, err := otelcol.NewCollector(otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "serve", Version: "test"},
		Factories: func() (otelcol.Factories, error) { return factories(dir) },
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			URIs: []string{fmt.Sprintf(
				config, filepath.Join(dir, "received.pb"), filepath.Join(dir, "received.json"),
			)},
			ProviderFactories: []confmap.ProviderFactory{yamlprovider.NewFactory()},
		}},
	})
	if err != nil {
		fail(err)
	}
	if err := collector.Run(context.Background()); err != nil {
		fail(err)
	}
}

func factories(dir string) (otelcol.Factories, error) {
	receivers, err := otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory())
	if err != nil {
		return otelcol.Factories{}, err
	}
	exporters, err := otelcol.MakeFactoryMap[exporter.Factory](fileexporter.NewFactory())
	if err != nil {
		return otelcol.Factories{}, err
	}
	return otelcol.Factories{Receivers: receivers, Exporters: exporters, Telemetry: logOnly(dir)}, nil
}

// The collector without metrics and traces of its own, with a log on standard error.
func logOnly(dir string) telemetry.Factory {
	newLogger := func(
		context.Context, telemetry.LoggerSettings, component.Config,
	) (*zap.Logger, component.ShutdownFunc, error) {
		encoder := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
		core := zapcore.NewCore(encoder, zapcore.Lock(os.Stderr), zapcore.InfoLevel)
		return zap.New(&addressFinder{core, dir}), nil, nil
	}
	settings := func() component.Config { return &struct{}{} }
	return telemetry.NewFactory(settings, telemetry.WithCreateLogger(newLogger))
}

// A log that also writes the address of the receiver to a file. The receiver only reports it in a log message, which it
// writes when it listens.
type addressFinder struct {
	zapcore.Core
	dir string
}

func (f *addressFinder) With(fields []zapcore.Field) zapcore.Core {
	return &addressFinder{f.Core.With(fields), f.dir}
}

func (f *addressFinder) Check(entry zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if f.Enabled(entry.Level) {
		return to.AddCore(entry, f)
	}
	return to
}

func (f *addressFinder) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	if entry.Message == "Starting HTTP server" {
		for _, field := range fields {
			if field.Key == "endpoint" {
				publish(filepath.Join(f.dir, "address"), field.String)
			}
		}
	}
	return f.Core.Write(entry, fields)
}

// Writes a file that is complete when it appears.
func publish(path string, text string) {
	if err := os.WriteFile(path+".new", []byte(text+"\n"), 0o600); err != nil {
		fail(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		fail(err)
	}
}

func fail(what any) {
	fmt.Fprintln(os.Stderr, what)
	os.Exit(1)
}
