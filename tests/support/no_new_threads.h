/// NoNewThreads prevents the start of threads, for tests of what happens then.
#pragma once

#include <cstddef>

#include <pthread.h>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {

/// Prevents the start of any thread while it lives: each thread would want a stack larger than an
/// address space. A limit of the process would also prevent it, and would starve the running
/// threads.
class NoNewThreads {
 public:
  NoNewThreads() {
    REQUIRE(pthread_getattr_default_np(&before_) == 0);
    pthread_attr_t huge;
    REQUIRE(pthread_attr_init(&huge) == 0);
    REQUIRE(pthread_attr_setstacksize(&huge, std::size_t{1} << 50U) == 0);
    REQUIRE(pthread_setattr_default_np(&huge) == 0);
    pthread_attr_destroy(&huge);
  }
  ~NoNewThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  NoNewThreads(const NoNewThreads&) = delete;
  NoNewThreads& operator=(const NoNewThreads&) = delete;

 private:
  pthread_attr_t before_{};
};

}  // namespace stagecraft
