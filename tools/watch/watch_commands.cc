#include "stagecraft/tools/watch/watch_commands.h"

#include <chrono>
#include <ostream>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/watch/state_text.h"
#include "stagecraft/tools/watch/watch_client.h"

namespace stagecraft::tools {
namespace {

constexpr std::chrono::seconds kRefresh{1};
constexpr const char* kClear = "\x1b[H\x1b[J";

void add_link(CLI::App& app, std::string& link) {
  app.add_option("LINK", link, "what `stagecraft train --serve` has printed")->required();
}

nlohmann::ordered_json state_now(const WatchClient& client) {
  auto state = client.state();
  if (!state) {
    refuse_without_answer();
  }
  return *state;
}

/// Shows the run until it ends. Keeps the last state on the terminal.
ExitCode follow_run(const WatchClient& client, Console& console) {
  nlohmann::ordered_json state = state_now(client);
  for (;;) {
    print((console.out_is_terminal ? kClear : "") + state_text(state), console);
    if (state.at("phase") == "ended") {
      return ExitCode::Good;
    }
    std::this_thread::sleep_for(kRefresh);
    const auto next = client.state();
    if (!next) {
      print("the run answers no more: it has ended, or its host cannot be reached\n", console);
      return ExitCode::Good;
    }
    state = *next;
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
  app.footer(
      "Exit status: 0 the run will do it; 1 it cannot; 2 wrong usage, or nobody answers at the "
      "link.");
  if (const auto help = parse_command_line(app, words)) {
    print(*help, console);
    return ExitCode::Good;
  }
  const std::string why = WatchClient(link).wish(name);
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
  app.footer("Exit status: 0 shown; 2 wrong usage, or nobody answers at the link.");
  if (const auto help = parse_command_line(app, words)) {
    print(*help, console);
    return ExitCode::Good;
  }
  const WatchClient client(link);
  if (!once) {
    return follow_run(client, console);
  }
  print(state_text(state_now(client)), console);
  return ExitCode::Good;
}

ExitCode run_status(const std::vector<std::string>& words, Console& console) {
  std::string link;
  bool json = false;
  CLI::App app("Prints one line about a training run.", "stagecraft status");
  add_link(app, link);
  app.add_flag("--json", json, "print its whole state as one JSON object");
  app.footer("Exit status: 0 printed; 2 wrong usage, or nobody answers at the link.");
  if (const auto help = parse_command_line(app, words)) {
    print(*help, console);
    return ExitCode::Good;
  }
  const nlohmann::ordered_json state = state_now(WatchClient(link));
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
