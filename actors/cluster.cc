#include "stagecraft/actors/cluster.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <thread>

#include <fmt/format.h>

#include "stagecraft/actors/launch/threads.h"
#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

constexpr std::string_view kOption = "--ranks";

int ranks_from(std::string_view text) {
  int ranks = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), ranks);
  if (fault != std::errc{} || end != text.data() + text.size() || ranks < 1) {
    throw Error(Errc::UsageArgument,
                fmt::format("{} needs a whole number of at least 1, not \"{}\"", kOption, text));
  }
  return ranks;
}

/// Removes argv[at, at + count).
void take_out(int& argc, char** argv, int at, int count) {
  std::copy(argv + at + count, argv + argc, argv + at);
  argc -= count;
  argv[argc] = nullptr;
}

}  // namespace

Cluster Cluster::local(int ranks) {
  if (ranks < 1) {
    throw Error(Errc::UsageArgument, fmt::format("a cluster has at least one rank, not {}", ranks));
  }
  return {ranks, std::make_shared<const ThreadLauncher>()};
}

Cluster Cluster::from_args(int& argc, char** argv) {
  int ranks = std::max(8, static_cast<int>(std::thread::hardware_concurrency()));
  for (int i = 1; i < argc;) {
    const std::string_view word = argv[i];
    if (word == kOption) {
      ranks = ranks_from(i + 1 < argc ? argv[i + 1] : "");
      take_out(argc, argv, i, 2);
    } else if (word.starts_with(kOption) && word.substr(kOption.size()).starts_with('=')) {
      ranks = ranks_from(word.substr(kOption.size() + 1));
      take_out(argc, argv, i, 1);
    } else {
      ++i;
    }
  }
  return local(ranks);
}

}  // namespace stagecraft
