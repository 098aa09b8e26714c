/// Machine runs simulated devices: each of their streams is a thread that runs kernels in the order
/// in which they were given, as late as it likes.
///
///     host thread --launch--> stream 0: [matmul][record e]
///                 --launch--> stream 1: [wait e][copy]
///
/// There is one, which never ends: LibTorch keeps devices until the process ends. All functions may
/// be called from any thread; kernels run without the lock.
/// SM-1: only record() and wait() order kernels of different streams.
/// SM-2: a host that waits while no kernel ends gets an error that says what each stream runs.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "stagecraft/tests/sim/detector.h"
#include "stagecraft/tests/sim/memory.h"

namespace stagecraft::sim {

/// The streams of a device: the default one, a pool of these many, and one of high priority.
inline constexpr int kPool = 32;
/// Machine::calls() has this where the host waited for a stream.
inline const std::string kHostWaits = "the host waits";

/// StreamCall names the n-th wait that a stream of a device is given, or the n-th block of memory
/// that is kept for it, from 0.
struct StreamCall {
  int device = 0, stream = 0, number = 0;

  friend bool operator==(const StreamCall&, const StreamCall&) = default;
};

/// Options are set while no kernel runs.
struct Options {
  /// Kernels run when they are given, without the streams' threads. The detector finds the same,
  /// much faster; numbers are right even where a wait is missing.
  bool at_once = false;
  std::chrono::microseconds most_delay{0};  ///< at random before each kernel
  unsigned seed = 1;                        ///< of the delays
  bool has_pinned_memory = true;
  bool poison = false;  ///< memory is overwritten when it is freed, in the order of its stream
  std::size_t memory = SIZE_MAX;                                  ///< bytes of each device
  std::chrono::milliseconds standstill{std::chrono::minutes(1)};  ///< SM-2: without an end
  std::optional<StreamCall> left_out_wait;
  std::optional<StreamCall> left_out_keep;
  bool keeps_calls = false;  ///< for Machine::calls()
};

/// Mark is one recording of an event.
struct Mark {
  std::string of;  ///< the name of its stream
  bool is_done = false;
  std::chrono::steady_clock::time_point time;
  Detector::Clock clock;
};

struct Stream;

class Machine {
 public:
  using Kernel = std::function<void()>;
  using Calls = std::map<std::string, std::vector<std::string>>;  ///< by name of a stream

  /// Access is memory that a kernel uses, by the address that the host would use.
  struct Access {
    const void* data = nullptr;
    std::size_t bytes = 0;
    bool writes = false;
  };

  [[nodiscard]] static Machine& the();

  /// Begins anew with these options: streams are handed out from the first, their waits are counted
  /// from 0, and reports are dropped. Requires: nothing runs.
  void restart(Options begun);
  [[nodiscard]] const Options& options() const { return options_; }

  /// Starts devices 0 to count - 1, each with its default stream 0. Requires: called once.
  void start(int count);
  [[nodiscard]] int devices() const { return static_cast<int>(streams_.size()); }

  /// Returns another stream of the device. As LibTorch's CUDA does, a pool is handed out in turn,
  /// and another one of streams of high priority (which have none here).
  [[nodiscard]] Stream& next_stream(int device, bool high);
  [[nodiscard]] Stream& stream(int device, std::int64_t number);

  void launch(Stream& stream,
              const std::string& name,
              const std::vector<Access>& accesses,
              Kernel kernel);
  [[nodiscard]] std::shared_ptr<Mark> record(Stream& stream);
  void wait(Stream& stream, const std::shared_ptr<Mark>& mark);
  /// Tells the detector that kernels make the stream wait for the mark among themselves.
  void follow(Stream& stream, const Mark& mark);

  /// Both say whether it is done, and then order what the host issues next behind it.
  [[nodiscard]] bool is_done(const Mark& mark);
  [[nodiscard]] bool is_idle(const Stream& stream);
  /// All wait. Errors: those that kernels have thrown; std::runtime_error (SM-2).
  void synchronize(const Mark& mark);
  void synchronize(int device);
  void synchronize(Stream& stream);

  /// Returns memory of the device for its stream. Errors: c10::OutOfMemoryError.
  [[nodiscard]] void* allocate(Stream& stream, std::size_t bytes);
  void free(void* data);
  /// Keeps the memory, once freed, until what the stream was given by then is over.
  void use_on(void* data, Stream& stream);
  /// Return the waits of streams, and the blocks that were kept for other streams than their own,
  /// since restart().
  [[nodiscard]] std::vector<StreamCall> waited();
  [[nodiscard]] std::vector<StreamCall> kept();
  /// Returns what the host has called for each stream since restart(), in order: kernels, with the
  /// bytes of each tensor that they read or write; points and waits for points; and its own waits.
  [[nodiscard]] Calls calls();
  [[nodiscard]] std::int64_t bytes_in_use(int device);
  [[nodiscard]] std::int64_t peak_bytes(int device);
  void reset_peak(int device);

  /// Returns how often the host has waited, for a stream, an event or a device.
  [[nodiscard]] std::int64_t host_waits();
  /// Returns how many threads of the host have given kernels since restart().
  [[nodiscard]] std::size_t issuing_threads();
  /// Returns how often a device has copied from pageable memory, which may hold the host.
  [[nodiscard]] std::int64_t pageable_copies() const { return pageable_copies_; }
  void count_pageable_copy() { ++pageable_copies_; }
  /// Returns the accesses that nothing orders, found since the last call.
  [[nodiscard]] std::vector<std::string> take_reports();

 private:
  using Lock = std::unique_lock<std::mutex>;

  Machine() = default;
  [[nodiscard]] std::vector<StreamCall> numbered(int Stream::*count);
  void note_call(const std::string& stream, std::string call);
  Stream& add_stream(int device, std::size_t number);
  void seed(Stream& stream) const;
  void work(Stream& stream);
  void give(Stream& stream, std::string name, Kernel kernel);
  std::shared_ptr<Mark> mark_end_locked(Stream& stream);
  void wait_on_host(Lock& lock, const std::function<bool()>& is_over);
  [[nodiscard]] std::string standing() const;
  void synchronize_locked(Lock& lock, Stream& stream);
  void free_in(Memory& memory, Block& block);

  Options options_;
  std::mutex mutex_;
  std::condition_variable done_;  ///< a mark is done; while a host thread waits, a kernel is over
  std::vector<std::vector<std::unique_ptr<Stream>>> streams_;  ///< by device; null: not used yet
  std::vector<std::array<int, 2>> handed_out_;                 ///< by device, of both pools
  std::vector<Memory> memories_;                               ///< by device
  Detector detector_;
  std::int64_t host_waits_ = 0;
  std::atomic<std::int64_t> pageable_copies_{0};
  std::set<std::thread::id> issuers_;
  Calls calls_;
  int hosts_waiting_ = 0;    ///< now
  std::uint64_t ended_ = 0;  ///< kernels of all streams
  std::exception_ptr failure_;
};

/// Stream is a queue of kernels. Only Machine uses its members.
struct Stream {
  int device = 0, number = 0;
  int in_detector = 0;
  struct Given {
    std::string name;
    Machine::Kernel kernel;
  };
  std::deque<Given> kernels;  ///< the first one runs
  std::condition_variable has_work;
  std::uint64_t given = 0, done = 0;
  int waits = 0, kept = 0;  ///< since restart()
  std::minstd_rand random;

  [[nodiscard]] std::string name() const;
};

}  // namespace stagecraft::sim
