#include "stagecraft/actors/launch/worker/worker_program.h"

#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "stagecraft/actors/launch/network/local_address.h"
#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVariable = "STAGECRAFT_WORKER";
constexpr const char* kProgram = "stagecraft";
constexpr const char* kThisProgram = "/proc/self/exe";

bool is_program(const fs::path& path) {
  std::error_code none;
  return fs::is_regular_file(path, none) && access(path.c_str(), X_OK) == 0;
}

/// Returns where the generic worker may be, most likely places first.
std::vector<fs::path> places_to_look() {
  std::vector<fs::path> places;
  std::error_code failed;
  const fs::path here = fs::read_symlink(kThisProgram, failed).parent_path();
  if (!failed) {
    places.push_back(here / kProgram);
    places.push_back(here.parent_path() / kProgram);
    places.push_back(here.parent_path() / "bin" / kProgram);
  }
  places.push_back(fs::path(STAGECRAFT_INSTALLED_BIN) / kProgram);
  return places;
}

/// Resolves /proc/self/exe, which names another program in every process, in the process that named
/// it.
fs::path own_name(const fs::path& path) {
  std::error_code failed;
  const fs::path here = path == kThisProgram ? fs::read_symlink(path, failed) : path;
  return failed ? path : here;
}

WorkerProgram program_said(const std::string& said, const std::string& said_by) {
  const fs::path path = own_name(said);
  if (!is_program(path)) {
    throw Error(Errc::UsageFile,
                fmt::format("expected a program that can be run as a worker, found none at \"{}\" "
                            "({})",
                            path.string(),
                            said_by));
  }
  return worker_program_at(path.string());
}

template <class Number>
Number number_in(const std::string& option, const std::string& text) {
  Number number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc{} || end != text.data() + text.size() || number < 0) {
    throw Error(Errc::UsageArgument,
                fmt::format("{} expects a whole number of at least 0, found \"{}\"", option, text));
  }
  return number;
}

/// Parses "HOST:PORT", "[fd00::1]:PORT".
void take_address(const std::string& text, WorkerProcessOptions& options) {
  const std::size_t colon = text.rfind(':');
  std::string host = text.substr(0, colon);
  const bool in_brackets = host.starts_with('[') && host.ends_with(']');
  if (in_brackets) {
    host = host.substr(1, host.size() - 2);
  }
  if (colon == std::string::npos || host.empty() ||
      (!in_brackets && host.find(':') != std::string::npos)) {
    throw Error(
        Errc::UsageArgument,
        fmt::format("--join expects HOST:PORT, or [ADDRESS]:PORT of IPv6, found \"{}\"", text));
  }
  options.host = std::move(host);
  options.port = number_in<std::uint16_t>("--join HOST:PORT", text.substr(colon + 1));
}

}  // namespace

WorkerProgram worker_program_at(const std::string& path) {
  const bool is_generic = fs::path(path).filename() == kProgram;
  return {.path = path, .arguments = {is_generic ? "worker" : kWorkerWord}};
}

WorkerProgram find_worker_program(const std::string& wished) {
  if (!wished.empty()) {
    return program_said(wished, "SpawnOptions::program");
  }
  if (const char* said = std::getenv(kVariable); said != nullptr && *said != '\0') {
    return program_said(said, kVariable);
  }
  std::string looked;
  for (const fs::path& place : places_to_look()) {
    if (is_program(place)) {
      return worker_program_at(place.string());
    }
    looked += fmt::format("{}{}", looked.empty() ? "" : ", ", place.string());
  }
  throw Error(Errc::UsageFile,
              fmt::format("no worker program was found at {}: name one in {}", looked, kVariable));
}

std::vector<std::string> worker_arguments(const WorkerProcessOptions& options) {
  std::vector<std::string> words{"--join",
                                 host_and_port(options.host, options.port),
                                 "--credentials",
                                 options.credentials,
                                 "--lifeline",
                                 std::to_string(options.lifeline),
                                 "--heartbeat",
                                 std::to_string(options.heartbeat.interval.count()),
                                 "--silence",
                                 std::to_string(options.heartbeat.silence.count()),
                                 "--patience",
                                 std::to_string(options.patience.count())};
  const auto add = [&words](const char* option, const std::string& value) {
    words.insert(words.end(), {option, value});
  };
  if (options.outlive.count() > 0) {
    add("--outlive", std::to_string(options.outlive.count()));
  }
  if (options.place >= 0) {
    add("--place", std::to_string(options.place));
  }
  if (options.incarnation >= 0) {
    add("--incarnation", std::to_string(options.incarnation));
  }
  if (!options.bind.empty()) {
    add("--bind", options.bind);
  }
  return words;
}

WorkerProcessOptions parse_worker_arguments(const std::vector<std::string>& arguments) {
  WorkerProcessOptions options;
  for (std::size_t i = 0; i < arguments.size(); i += 2) {
    const std::string& option = arguments[i];
    if (i + 1 == arguments.size()) {
      throw Error(Errc::UsageArgument, option + " expects a value, found none");
    }
    const std::string& text = arguments[i + 1];
    const auto milliseconds = [&] {
      return std::chrono::milliseconds(number_in<std::int64_t>(option, text));
    };
    if (option == "--join") {
      take_address(text, options);
    } else if (option == "--credentials") {
      options.credentials = text;
    } else if (option == "--place") {
      options.place = number_in<std::int32_t>(option, text);
    } else if (option == "--incarnation") {
      options.incarnation = number_in<std::int64_t>(option, text);
    } else if (option == "--lifeline") {
      options.lifeline = number_in<int>(option, text);
    } else if (option == "--bind") {
      options.bind = text;
    } else if (option == "--heartbeat") {
      options.heartbeat.interval = milliseconds();
    } else if (option == "--silence") {
      options.heartbeat.silence = milliseconds();
    } else if (option == "--patience") {
      options.patience = milliseconds();
    } else if (option == "--outlive") {
      options.outlive = milliseconds();
    } else {
      throw Error(Errc::UsageArgument,
                  fmt::format("expected an option of a worker, found \"{}\"; there are --join, "
                              "--credentials, --place, --incarnation, --lifeline, --bind, "
                              "--heartbeat, --silence, --patience and --outlive",
                              option));
    }
  }
  if (options.host.empty() || options.credentials.empty()) {
    throw Error(Errc::UsageArgument,
                "a worker needs --join HOST:PORT, where its driver listens, and --credentials DIR, "
                "the worker's folder of those that `stagecraft credentials make` has made");
  }
  check_heartbeat(options.heartbeat);
  return options;
}

}  // namespace stagecraft
