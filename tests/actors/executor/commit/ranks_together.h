/// Runs the same work for every rank of a group at once, each on a thread of its own with a
/// collective of its own. The work makes no assertions: Catch2 takes them from one thread only.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/futures/collective/transport_collective.h"
#include "stagecraft/futures/transport/inproc.h"

namespace stagecraft::testing {

inline void on_ranks(int ranks, const std::function<void(Rank, Collective&)>& work) {
  const InprocNetwork network(ranks);
  std::vector<std::thread> threads;
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      set_own_thread_count(1);
      TransportCollective collective(network.endpoint(Rank(r)));
      try {
        work(Rank(r), collective);
      } catch (...) {
        failures[static_cast<std::size_t>(r)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) {
      std::rethrow_exception(failure);
    }
  }
}

inline Deadline in_a_minute() {
  return std::chrono::steady_clock::now() + std::chrono::minutes(1);
}

}  // namespace stagecraft::testing
