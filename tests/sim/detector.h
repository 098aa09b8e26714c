/// Detector finds accesses to the memory of a simulated device that no event orders.
///
/// It judges what is issued, not what runs: a program gets the same reports however its streams
/// drift. It keeps a vector clock for each stream and each thread of the host. A thread begins
/// with what all others have seen until then; what they say to each other later is not known.
///
///     stream 0   write x --- record event
///     stream 1                       wait for event --- read x      ordered
///     stream 2                                          read x      reported
///
/// Machine owns it and locks it.
/// RD-1: an access is reported if an earlier one overlaps it, at least one of them writes, and
///       neither one stream, nor an event, nor a wait of the thread that issues the later one
///       orders them.
/// RD-2: memory that a stream allocates may be any that was freed there: an allocation is a write
///       behind all that its stream was given.
/// Source: Mattern, Virtual time and global states of distributed systems, 1988.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace stagecraft::sim {

class Detector {
 public:
  using Clock = std::vector<std::uint64_t>;  ///< by stream; shorter ones end in zeros

  struct Access {
    std::uintptr_t begin = 0;
    std::size_t bytes = 0;
    bool writes = false;
  };

  /// Adds a stream. Returns its number: 0, 1, ...
  int add_stream(std::string name);

  /// Gives a kernel to the stream.
  void issue(int stream, const std::string& kernel, const std::vector<Access>& accesses);
  /// Returns the clock of an event that the stream is given now.
  [[nodiscard]] Clock record(int stream);
  /// Makes all that the stream is given from now on come after the event.
  void wait(int stream, const Clock& event);
  /// Makes all that this thread gives to any stream from now on come after the event.
  void wait_on_host(const Clock& event);

  /// Makes a block of memory known, or used again, for work of this stream.
  void allocate(std::uintptr_t begin, std::size_t bytes, int stream);
  /// Ends the block, once each of `streams` is done with what it was given. Reports each use that
  /// neither that nor a wait of this thread is ordered after, and later uses. It orders no later
  /// work: next time another thread may be the last to hold the block.
  void release(std::uintptr_t begin, const std::vector<int>& streams);
  /// Says that the host has seen the end of all uses of the block.
  void forget_uses(std::uintptr_t begin);

  /// Returns what was found since the last call.
  [[nodiscard]] std::vector<std::string> take_reports();

 private:
  struct Use {
    Access access;
    int stream = 0;
    std::uint64_t tick = 0;
    std::string kernel;
  };
  struct Block {
    std::size_t bytes = 0;
    bool live = true;
    std::vector<Use> uses;
  };

  [[nodiscard]] Clock& host();
  std::uint64_t& own_tick(int stream);
  [[nodiscard]] static bool is_before(const Use& use, const Clock& clock);
  void note(Block& block, Use use);
  [[nodiscard]] Block* block_at(std::uintptr_t address);
  [[nodiscard]] std::string text_of(const Use& use) const;

  std::vector<std::string> names_;
  std::vector<Clock> clocks_;
  Clock seen_;                              ///< by any thread of the host
  std::map<int, Clock> hosts_;              ///< by number of a thread
  std::map<std::uintptr_t, Block> blocks_;  ///< by first address
  std::vector<std::string> reports_;
};

}  // namespace stagecraft::sim
