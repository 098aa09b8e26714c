#include "stagecraft/actors/cluster/cluster.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>
#include <thread>

#include <fmt/format.h>

#include "stagecraft/actors/launch/fleet/processes.h"
#include "stagecraft/actors/launch/threads.h"
#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

/// One setting of a cluster, word for word, and the option or variable that gave it.
struct Word {
  std::string text, by;
};

/// The settings that were given; none: not given.
struct Said {
  std::optional<Word> ranks, workers, credentials;
};

[[noreturn]] void refuse(const Word& word, std::string_view expected) {
  throw Error(Errc::UsageArgument,
              fmt::format("{} expects {}, found \"{}\"", word.by, expected, word.text));
}

int number_from(const Word& word, int least, int most = std::numeric_limits<int>::max()) {
  const std::string& text = word.text;
  int number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc{} || end != text.data() + text.size() || number < least || number > most) {
    refuse(word, fmt::format("a whole number of at least {}", least));
  }
  return number;
}

void check_workers(const Word& word) {
  if (word.text != "threads" && word.text != "processes" && word.text != "joining") {
    refuse(word, "threads, processes or joining");
  }
}

void check_ranks(int ranks) {
  if (ranks < 1) {
    throw Error(Errc::UsageArgument, fmt::format("a cluster has at least one rank, not {}", ranks));
  }
}

/// Removes argv[at, at + count).
void take_out(int& argc, char** argv, int at, int count) {
  std::copy(argv + at + count, argv + argc, argv + at);
  argc -= count;
  argv[argc] = nullptr;
}

/// Takes `--option VALUE` and `--option=VALUE` out of the arguments; the last one counts.
std::optional<Word> take_option(int& argc, char** argv, std::string_view option) {
  std::optional<Word> value;
  for (int i = 1; i < argc;) {
    const std::string_view word = argv[i];
    if (word == option) {
      value = Word{i + 1 < argc ? argv[i + 1] : "", std::string(option)};
      take_out(argc, argv, i, i + 1 < argc ? 2 : 1);
    } else if (word.starts_with(option) && word.substr(option.size()).starts_with('=')) {
      value = Word{std::string(word.substr(option.size() + 1)), std::string(option)};
      take_out(argc, argv, i, 1);
    } else {
      ++i;
    }
  }
  return value;
}

std::optional<Word> variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional(Word{value, name});
}

Said said_by_env() {
  return {.ranks = variable("STAGECRAFT_RANKS"),
          .workers = variable("STAGECRAFT_WORKERS"),
          .credentials = variable("STAGECRAFT_CREDENTIALS")};
}

Cluster made_as(const Said& said) {
  if (said.workers) {
    check_workers(*said.workers);
  }
  SpawnOptions options = spawn_options_of_env();
  const int usual = options.hosts.empty()
                        ? std::max(8, static_cast<int>(std::thread::hardware_concurrency()))
                        : options.local_ranks + options.ranks_per_process * slots_of(options.hosts);
  const int ranks = said.ranks ? number_from(*said.ranks, 1) : usual;
  if (!said.workers || said.workers->text == "threads") {
    return Cluster::local(ranks);
  }
  options.workers_come = said.workers->text == "joining";
  options.credentials = said.credentials ? said.credentials->text : "";
  return Cluster::spawn(ranks, options);
}

}  // namespace

SpawnOptions spawn_options_of_env() {
  SpawnOptions options;
  options.tell = [](const std::string& line) { std::cerr << "stagecraft: " + line + "\n"; };
  const auto text = [](const char* name) {
    const auto word = variable(name);
    return word ? word->text : "";
  };
  options.workers_come = text("STAGECRAFT_WORKERS") == "joining";
  options.credentials = text("STAGECRAFT_CREDENTIALS");
  options.interface = text("STAGECRAFT_INTERFACE");
  options.meeting_place = text("STAGECRAFT_MEETING_PLACE");
  options.log_dir = text("STAGECRAFT_LOG_DIR");
  std::istringstream ssh(text("STAGECRAFT_SSH"));
  for (std::string word; ssh >> word;) {
    options.ssh.push_back(word);
  }
  if (const auto file = variable("STAGECRAFT_HOSTS")) {
    options.hosts = read_hosts(file->text);
  }
  if (const auto slots = variable("STAGECRAFT_PER_HOST")) {
    for (Host& host : options.hosts) {
      host.slots = number_from(*slots, 1);
    }
  }
  if (const auto port = variable("STAGECRAFT_PORT")) {
    options.port = static_cast<std::uint16_t>(number_from(*port, 0, 65535));
  }
  if (const auto ranks = variable("STAGECRAFT_LOCAL_RANKS")) {
    options.local_ranks = number_from(*ranks, 0);
  }
  if (const auto coming = variable("STAGECRAFT_WORKERS_COMING")) {
    options.workers_coming = number_from(*coming, 0);
  }
  if (const auto processor = variable("STAGECRAFT_PROCESSOR")) {
    if (processor->text != "own" && processor->text != "common") {
      refuse(*processor, "own or common");
    }
    options.processor =
        processor->text == "common" ? ProcessorChoice::Common : ProcessorChoice::Own;
  }
  if (const auto seconds = variable("STAGECRAFT_JOIN_SECONDS")) {
    options.join_deadline = std::chrono::seconds(number_from(*seconds, 1));
  }
  if (const auto seconds = variable("STAGECRAFT_SILENCE_SECONDS")) {
    options.silence = std::chrono::seconds(number_from(*seconds, 2));
  }
  return options;
}

Cluster Cluster::local(int ranks) {
  check_ranks(ranks);
  return {ranks, std::make_shared<ThreadLauncher>()};
}

Cluster Cluster::spawn(int ranks, const SpawnOptions& options) {
  check_ranks(ranks);
  return {ranks, launch_processes(options, ranks)};
}

Cluster Cluster::from_args(int& argc, char** argv) {
  Said said = said_by_env();
  const auto take = [&](std::optional<Word>& value, std::string_view option) {
    if (auto taken = take_option(argc, argv, option)) {
      value = std::move(taken);
    }
  };
  take(said.ranks, "--ranks");
  take(said.workers, "--workers");
  take(said.credentials, "--credentials");
  return made_as(said);
}

Cluster Cluster::from_env() {
  return made_as(said_by_env());
}

void Cluster::replace(Rank rank) const {
  if (rank.value < 0 || rank.value >= ranks_) {
    throw Error(
        Errc::UsageArgument,
        fmt::format(
            "rank {} is none of this cluster, which has ranks 0 to {}", rank.value, ranks_ - 1));
  }
  launcher_->replace(rank);
}

std::vector<WorkerPlace> Cluster::workers() const {
  std::vector<WorkerPlace> all;
  for (int r = 0; r < ranks_; ++r) {
    all.push_back(launcher_->place(Rank(r)));
  }
  return all;
}

std::string Cluster::processor_difference() const {
  std::vector<NamedProcessor> all{{"this process", processor_of_this_process()}};
  for (const WorkerPlace& place : workers()) {
    if (!place.processor.capability.empty()) {
      all.emplace_back(
          fmt::format(
              "rank {}{}", place.rank.value, place.host.empty() ? "" : " (" + place.host + ")"),
          place.processor);
    }
  }
  const auto difference = difference_of(all);
  return difference ? "processes " + to_string(*difference) : "";
}

}  // namespace stagecraft
