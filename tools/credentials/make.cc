/// `stagecraft credentials make`
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/actors/security/cluster_credentials.h"
#include "stagecraft/actors/security/credentials_report.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/number.h"
#include "stagecraft/tools/common/output.h"
#include "stagecraft/tools/credentials/commands.h"

namespace stagecraft::tools {
namespace {

struct MakeOptions {
  std::string dir;
  int workers = 8;
  int days = 7;
  std::string cluster;
};

void add_options(CLI::App& app, MakeOptions& o) {
  app.add_option("DIR", o.dir, "folder to make; it must not exist yet")
      ->required()
      ->type_name("DIR");
  app.add_option("--workers", o.workers, "number of workers, without the driver [8]")
      ->check(whole_number(1, 65536))
      ->type_name("N");
  app.add_option("--valid-days", o.days, "days for which the certificates are valid [7]")
      ->check(whole_number(1, 36500))
      ->type_name("DAYS");
  app.add_option("--cluster", o.cluster, "name of the cluster [a random name]")->type_name("NAME");
}

/// Reads the folder back, so that the text reports what is on disk.
std::string made_text(const std::string& dir) {
  const security::CredentialsReport report = security::inspect_credentials(dir);
  return fmt::format(
      "made '{0}': cluster '{1}', the driver and {2} worker{3}, valid until {4}\ncopy one folder "
      "to "
      "one host ('{0}/worker-0'); 'ca-key.pem' stays here\n",
      dir,
      report.authority->cluster,
      report.members.size() - 1,
      report.members.size() == 2 ? "" : "s",
      security::utc_text(report.members.front().certificate->valid_until));
}

}  // namespace

ExitCode make_cluster_credentials(const std::vector<std::string>& words, Console& console) {
  MakeOptions options;
  CLI::App app(
      "Makes the credentials of a cluster: a private authority, and a folder with a certificate "
      "and a key for the driver and for each worker.",
      "stagecraft credentials make");
  app.option_defaults()->always_capture_default(false);
  app.footer(
      "Exit status: 0 made; 2 wrong usage, or a folder that exists already or cannot be written.\n"
      "Example: stagecraft credentials make cluster --workers 4 --valid-days 2");
  add_options(app, options);
  if (const auto help = parse_command_line(app, words)) {
    write_output("", *help, console);
    return ExitCode::Good;
  }
  make_credentials(options.dir,
                   {.members = options.workers,
                    .valid_for = std::chrono::hours(24 * options.days),
                    .cluster = options.cluster});
  write_output("", made_text(options.dir), console);
  return ExitCode::Good;
}

}  // namespace stagecraft::tools
