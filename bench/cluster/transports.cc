/// How fast do tensors get to another process? This program sends tensors of many sizes both ways
/// between two processes of this host, in turns by every way:
///
///   hand-over       between threads of one process; no copy
///   shared memory   between processes of a host; one copy
///   ZeroMQ          between hosts, here over the loopback; encrypted
///   memcpy          one copy within a process, to compare with
///   local socket    the same bytes through a bare local socket, to compare with
///   gloo            torch.distributed's, if a Python with torch and a script are given
///
/// One way is half of a round trip, the median. Bytes per second are those of a stream with four
/// tensors on their way at a time.
///
///   transports [--pinned] [--json] [--peer PYTHON --peer-script FILE]
///
/// --pinned gives each process one processor. The script takes `--json FILE` and appends a line to
/// that file: an object by size ("4 KiB", "64 KiB", "1 MiB", ...) of objects with `gloo_us`, one
/// way, and `gloo_window`, the stream in GB/s.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/ops/ones.h>
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/base/median.h"
#include "stagecraft/bench/cluster/gloo.h"
#include "stagecraft/bench/cluster/pinning.h"
#include "stagecraft/bench/cluster/sides.h"
#include "stagecraft/bench/hardware.h"
#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/futures/transport/inproc.h"
#include "stagecraft/futures/transport/shared_memory/memory_file.h"

namespace stagecraft::bench::transports {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kKibi = 1024, kMebi = kKibi * kKibi;
constexpr std::array kSizes{std::int64_t{64}, 4 * kKibi, 64 * kKibi, kMebi, 16 * kMebi, 64 * kMebi};
constexpr int kOnTheirWay = 4;
constexpr int kStreams = 3;

struct Row {
  std::string way;
  std::int64_t bytes = 0;
  double one_way_us = 0.0;
  double bytes_per_second = 0.0;
};

std::string size_text(std::int64_t bytes) {
  return bytes >= kMebi   ? fmt::format("{} MiB", bytes / kMebi)
         : bytes >= kKibi ? fmt::format("{} KiB", bytes / kKibi)
                          : fmt::format("{} B", bytes);
}

/// Returns how often a size is sent: about the same bytes for each, within limits.
int times_of(std::int64_t bytes) {
  return static_cast<int>(std::clamp<std::int64_t>((512 * kMebi) / bytes, 12, 1500));
}

double seconds_since(Clock::time_point begun) {
  return std::chrono::duration<double>(Clock::now() - begun).count();
}

/// Exchange sends and receives on one side, by one way.
class Exchange {
 public:
  Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  virtual ~Exchange() = default;

  virtual void send() = 0;
  virtual void receive() = 0;
  /// Sends a small answer, and waits for it.
  virtual void acknowledge() = 0;
  virtual void hear() = 0;
};

/// Measures on the first side; the other one does its part.
Row measure(std::string way, std::int64_t bytes, bool is_first, Exchange& exchange) {
  const int times = times_of(bytes), warm_up = std::max(3, times / 10);
  std::vector<double> round_trips;
  for (int i = 0; i < times + warm_up; ++i) {
    const auto begun = Clock::now();
    if (is_first) {
      exchange.send();
      exchange.receive();
    } else {
      exchange.receive();
      exchange.send();
    }
    if (i >= warm_up) {
      round_trips.push_back(seconds_since(begun));
    }
  }
  std::vector<double> streams;
  for (int stream = 0; stream < kStreams; ++stream) {
    const auto begun = Clock::now();
    for (int i = 0; i < times; ++i) {
      if (is_first) {
        if (i >= kOnTheirWay) {
          exchange.hear();
        }
        exchange.send();
      } else {
        exchange.receive();
        exchange.acknowledge();
      }
    }
    for (int i = 0; is_first && i < std::min(times, kOnTheirWay); ++i) {
      exchange.hear();
    }
    streams.push_back(seconds_since(begun) / times);
  }
  return {std::move(way),
          bytes,
          median(round_trips) / 2 * 1e6,
          static_cast<double>(bytes) / median(streams)};
}

class OverTransport final : public Exchange {
 public:
  OverTransport(std::shared_ptr<Transport> end, Rank other, std::int64_t bytes)
      : end_(std::move(end)), other_(other), values_(at::ones({bytes}, at::kByte)) {}

  void send() override { end_->send(other_, tag(sent_++, kValues), values_); }
  void receive() override { (void)end_->receive(other_, tag(received_++, kValues)).get(); }
  void acknowledge() override { end_->send(other_, tag(acknowledged_++, kAnswers), answer_); }
  void hear() override { (void)end_->receive(other_, tag(heard_++, kAnswers)).get(); }

 private:
  static constexpr EdgeId kValues{0}, kAnswers{1};

  static Tag tag(std::int64_t number, EdgeId edge) {
    return {.submission = Submission(number), .edge = edge};
  }

  const std::shared_ptr<Transport> end_;
  const Rank other_;
  const at::Tensor values_, answer_ = at::ones({1}, at::kByte);
  std::int64_t sent_ = 0, received_ = 0, acknowledged_ = 0, heard_ = 0;
};

class OverSocket final : public Exchange {
 public:
  OverSocket(const Descriptor& socket, std::int64_t bytes)
      : socket_(socket.number()), values_(at::ones({bytes}, at::kByte)) {}

  void send() override { write(values_.nbytes()); }
  void receive() override { read(values_.nbytes()); }
  void acknowledge() override { write(1); }
  void hear() override { read(1); }

 private:
  void write(std::size_t size) {
    const auto* const data = static_cast<const char*>(values_.const_data_ptr());
    for (std::size_t done = 0; done < size;) {
      const ssize_t more = ::send(socket_, data + done, size - done, MSG_NOSIGNAL);
      if (more <= 0) {
        throw std::runtime_error("the other process has ended");
      }
      done += static_cast<std::size_t>(more);
    }
  }
  void read(std::size_t size) {
    if (::recv(socket_, values_.mutable_data_ptr(), size, MSG_WAITALL) !=
        static_cast<ssize_t>(size)) {
      throw std::runtime_error("the other process has ended");
    }
  }

  const int socket_;
  const at::Tensor values_;
};

Row hand_over(std::int64_t bytes) {
  const InprocNetwork network(2);
  std::thread other([&] {
    OverTransport exchange(network.endpoint(Rank(1)), Rank(0), bytes);
    (void)measure("", bytes, /*is_first=*/false, exchange);
  });
  OverTransport exchange(network.endpoint(Rank(0)), Rank(1), bytes);
  Row row = measure("hand-over", bytes, /*is_first=*/true, exchange);
  other.join();
  return row;
}

Row memory_copy(std::int64_t bytes) {
  const at::Tensor from = at::ones({bytes}, at::kByte), to = at::ones({bytes}, at::kByte);
  std::vector<double> seconds;
  for (int i = 0; i < times_of(bytes); ++i) {
    const auto begun = Clock::now();
    std::memcpy(to.mutable_data_ptr(), from.const_data_ptr(), static_cast<std::size_t>(bytes));
    seconds.push_back(seconds_since(begun));
  }
  return {"memcpy", bytes, median(seconds) * 1e6, static_cast<double>(bytes) / median(seconds)};
}

/// Runs the ways of processes for one size on one side. Returns the first side's rows.
std::vector<Row> between_processes(Side& side, std::int64_t bytes) {
  const Rank other(1 - side.number());
  std::vector<Row> rows;
  const std::pair<const char*, std::int64_t> ways[] = {{"shared memory", MemoryFile::usual_limit()},
                                                       {"ZeroMQ", 0}};
  for (const auto& [name, shared] : ways) {
    const Link link(side, {.shared_memory = shared});
    OverTransport exchange(link.end, other, bytes);
    rows.push_back(measure(name, bytes, side.is_first(), exchange));
    (void)side.exchange("");  // all has arrived before a port closes
  }
  OverSocket exchange(side.to_other(), bytes);
  rows.push_back(measure("local socket", bytes, side.is_first(), exchange));
  return rows;
}

/// Returns gloo's rows for the sizes that the script measures.
std::vector<Row> gloo(const Peer& peer) {
  const nlohmann::json measured = gloo_figures(peer);
  std::vector<Row> rows;
  for (const std::int64_t bytes : kSizes) {
    if (const auto found = measured.find(size_text(bytes)); found != measured.end()) {
      rows.push_back(
          {"gloo", bytes, found->at("gloo_us"), found->at("gloo_window").get<double>() * 1e9});
    }
  }
  return rows;
}

void print(const Row& row, bool json) {
  if (json) {
    fmt::print("{}\n",
               nlohmann::json{{"way", row.way},
                              {"bytes", row.bytes},
                              {"bytes_per_second", row.bytes_per_second},
                              {"one_way_us", row.one_way_us}}
                   .dump());
  } else {
    fmt::print("{:>8}  {:<14}{:>12.1f} us{:>12.2f} GB/s\n",
               size_text(row.bytes),
               row.way,
               row.one_way_us,
               row.bytes_per_second * 1e-9);
  }
}

}  // namespace

int run(int argc, char** argv) {
  CLI::App app("How fast do tensors get to another process?");
  bool pinned = false, json = false;
  Peer peer;
  app.add_flag("--pinned", pinned, "give each process one processor");
  app.add_flag("--json", json, "print one object for each row");
  add_gloo_options(app, peer);
  CLI11_PARSE(app, argc, argv);
  if (!json) {
    fmt::print("{}{}\n{:>8}  {:<14}{:>15}{:>17}\n",
               hardware(),
               pinned ? ", each process on one processor" : "",
               "size",
               "way",
               "one way",
               "stream");
  }
  Side::run(2, [&](Side& side) {
    set_own_thread_count(1);
    if (pinned) {
      const std::vector<int> all = usable_processors();
      restrict_to(getpid(), {all[static_cast<std::size_t>(side.number()) % all.size()]});
    }
    for (const std::int64_t bytes : kSizes) {
      const std::vector<Row> rows = between_processes(side, bytes);
      if (side.is_first()) {
        print(hand_over(bytes), json);
        for (const Row& row : rows) {
          print(row, json);
        }
        print(memory_copy(bytes), json);
      }
      (void)side.exchange("");
    }
  });
  if (!peer.python.empty()) {
    for (const Row& row : gloo(peer)) {
      print(row, json);
    }
  }
  return 0;
}

}  // namespace stagecraft::bench::transports
