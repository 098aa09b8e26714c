#include "stagecraft/tools/watch/watch_commands.h"

#include <chrono>
#include <cstdlib>
#include <istream>
#include <ostream>
#include <string>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/watch/state_text.h"
#include "stagecraft/tools/watch/watch_client.h"

namespace stagecraft::tools {
namespace {

constexpr std::chrono::seconds kRefresh{1};
constexpr const char* kClear = "\x1b[H\x1b[J";

constexpr const char* kLinkVariable = "STAGECRAFT_WATCH_LINK";

/// Other users of a host see the words of a command, so the link need not be one.
void add_link(CLI::App& app, std::string& link) {
  app.add_option(
      "LINK",
      link,
      "what `stagecraft train --serve` has printed; -: read from standard input; default: "
      "the environment variable STAGECRAFT_WATCH_LINK");
}

/// Errors: UsageArgument without a link.
WatchClient client_of(const std::string& word, Console& console) {
  std::string link = word;
  if (word == "-") {
    std::getline(console.in, link);
  } else if (const char* variable = std::getenv(kLinkVariable);
             word.empty() && variable != nullptr) {
    link = variable;
  }
  if (link.empty()) {
    throw Error(Errc::UsageArgument,
                fmt::format("expected the link of a run: as LINK, in the environment variable {}, "
                            "or with - on standard input",
                            kLinkVariable));
  }
  return WatchClient(link);
}

/// Shows the run until it ends. Keeps the last state on the terminal.
ExitCode follow_run(const WatchClient& client, Console& console) {
  for (;; std::this_thread::sleep_for(kRefresh)) {
    const nlohmann::ordered_json state = client.state();
    print((console.out_is_terminal ? kClear : "") + state_text(state), console);
    if (state.at("phase") == "ended") {
      return ExitCode::Good;
    }
  }
}

ExitCode wish_of_run(const std::string& name,
                     const char* about,
                     const char* follows,
                     const std::vector<std::string>& words,
                     Console& console) {
  std::string link;
  CLI::App app(about, "stagecraft " + name);
  add_link(app, link);
  app.footer(fmt::format(
      "Exit status: 0 the run will do it; 1 it cannot; 2 wrong usage, or nobody answers at the "
      "link.\n"
      "Example: stagecraft {} -",
      name));
  if (const auto help = parse_command_line(app, words)) {
    print(*help, console);
    return ExitCode::Good;
  }
  const std::string why = client_of(link, console).wish(name);
  if (!why.empty()) {
    console.err << fmt::format("stagecraft: not done: {}\n", why);
    return ExitCode::Failed;
  }
  print(follows, console);
  return ExitCode::Good;
}

}  // namespace

ExitCode watch_run(const std::vector<std::string>& words, Console& console) {
  std::string link;
  bool once = false;
  CLI::App app("Shows a training run in the terminal, until it ends.", "stagecraft watch");
  add_link(app, link);
  app.add_flag("--once", once, "print its state now, and end");
  app.footer(
      "Exit status: 0 shown, to its end without --once; 2 wrong usage, or nobody answers at the "
      "link.\n"
      "Example: stagecraft watch --once");
  if (const auto help = parse_command_line(app, words)) {
    print(*help, console);
    return ExitCode::Good;
  }
  const WatchClient client = client_of(link, console);
  if (!once) {
    return follow_run(client, console);
  }
  print(state_text(client.state()), console);
  return ExitCode::Good;
}

ExitCode run_status(const std::vector<std::string>& words, Console& console) {
  std::string link;
  bool json = false;
  CLI::App app("Prints one line about a training run.", "stagecraft status");
  add_link(app, link);
  app.add_flag("--json", json, "print its whole state as one JSON object");
  app.footer(
      "Exit status: 0 printed; 2 wrong usage, or nobody answers at the link.\n"
      "Example: stagecraft status --json");
  if (const auto help = parse_command_line(app, words)) {
    print(*help, console);
    return ExitCode::Good;
  }
  const nlohmann::ordered_json state = client_of(link, console).state();
  print(json ? state.dump() + '\n' : state_line(state), console);
  return ExitCode::Good;
}

ExitCode stop_run(const std::vector<std::string>& words, Console& console) {
  return wish_of_run("stop",
                     "Ends a training run after the step in progress; it saves as always.",
                     "the run ends after this step\n",
                     words,
                     console);
}

ExitCode checkpoint_run(const std::vector<std::string>& words, Console& console) {
  return wish_of_run("checkpoint",
                     "Makes a training run write a checkpoint after the step in progress.",
                     "a checkpoint follows after this step\n",
                     words,
                     console);
}

}  // namespace stagecraft::tools
