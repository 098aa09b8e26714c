/// Tests actors of a user's classes on ranks that are threads and on ranks that are processes.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <optional>
#include <thread>
#include <vector>

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>

#include "stagecraft/actors/cluster/cluster.h"
#include "stagecraft/actors/launch/launcher.h"
#include "stagecraft/futures/wait.h"
#include "stagecraft/tests/integration/remote_classes.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/error_of.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr int kRemoteRanks = 3;

Cluster processes(int ranks = kRemoteRanks) {
  return Cluster::spawn(ranks, {.program = STAGECRAFT_REMOTE_WORKER});
}

Cluster cluster_of(bool has_processes) {
  return has_processes ? processes() : Cluster::local(kRemoteRanks);
}

/// Returns the bytes of tensors that have come to or gone from this process's port.
std::int64_t driver_bytes(const Cluster& cluster) {
  std::int64_t bytes = 0;
  for (const auto& [key, link] : cluster.launcher()->traffic().links) {
    bytes += link.bytes_sent + link.bytes_received;
  }
  return bytes;
}

TEST_CASE("an actor keeps its state, and its calls run in order", "[remote]") {
  const Cluster cluster = cluster_of(GENERATE(false, true));
  const auto book = cluster.spawn<Notebook>(on(Rank(1)), "first");
  CHECK(book.call<&Notebook::title>().get() == "first");
  std::vector<Future<std::int64_t>> counts;
  std::vector<std::int64_t> told;
  for (std::int64_t i = 0; i < 3000; ++i) {
    told.push_back(7 * i);
    counts.push_back(book.call<&Notebook::note>(7 * i));
  }
  REQUIRE(wait_all(counts, patience()));
  for (std::size_t i = 0; i < counts.size(); ++i) {
    REQUIRE(counts[i].get() == static_cast<std::int64_t>(i + 1));
  }
  CHECK(book.call<&Notebook::notes>().get() == told);
  book.call<&Notebook::clear>().get();
  CHECK(book.call<&Notebook::notes>().get().empty());
}

TEST_CASE("values of all kinds go there and back", "[remote]") {
  const bool has_processes = GENERATE(false, true);
  const Cluster cluster = cluster_of(has_processes);
  const auto book = cluster.spawn<Notebook>(on(Rank(0)), "kinds");
  const Match back =
      book.call<&Notebook::match>(Match{.row = 4, .name = "cat", .cost = at::full({2, 2}, 0.5)})
          .get();
  CHECK(back.row == 5);
  CHECK(back.name == "cat");
  CHECK(at::equal(back.cost, at::full({2, 2}, 0.5)));
  CHECK(book.call<&Notebook::text>(1'000'000).get().size() == 1'000'000);
  CHECK(book.call<&Notebook::text>(0).get().empty());
  CHECK(at::equal(book.call<&Notebook::tensor>(500'000, 2.5).get(), at::full({500'000}, 2.5F)));
  CHECK((book.call<&Notebook::process>().get() == getpid()) == !has_processes);
}

TEST_CASE("a future that is passed on is not read: its value goes from rank to rank", "[remote]") {
  const Cluster cluster = cluster_of(GENERATE(false, true));
  const auto maker = cluster.spawn<Notebook>(on(Rank(0)), "maker");
  const auto same = cluster.spawn<Notebook>(on(Rank(0)), "on the same rank");
  const auto taker = cluster.spawn<Notebook>(on(Rank(2)), "taker");
  Future<at::Tensor> made = maker.call<&Notebook::tensor>(1'000'000, 1.0);
  const Future<at::Tensor> more = taker.call<&Notebook::plus>(made, 1.0);
  const Future<double> here = same.call<&Notebook::sum>(made);
  made = Future<at::Tensor>();  // its value is still on the way
  CHECK(taker.call<&Notebook::sum>(more).get() == 2'000'000.0);
  CHECK(maker.call<&Notebook::sum>(more).get() == 2'000'000.0);
  CHECK(here.get() == 1'000'000.0);
  CHECK(driver_bytes(cluster) < 100'000);
  CHECK(at::equal(more.get(), at::full({1'000'000}, 2.0F)));
}

TEST_CASE("a value of the driver's, ready or not, is an argument like others", "[remote]") {
  const Cluster cluster = cluster_of(GENERATE(false, true));
  const auto book = cluster.spawn<Notebook>(on(Rank(1)), "book");
  const Future<at::Tensor> kept = Cluster::put(at::full({10}, 3.0F));
  CHECK(book.call<&Notebook::sum>(kept).get() == 30.0);
  CHECK(book.call<&Notebook::sum>(kept).get() == 30.0);
  Promise<at::Tensor> promise;
  const Future<double> later = book.call<&Notebook::sum>(promise.future());
  const Future<std::int64_t> behind = book.call<&Notebook::note>(1);
  CHECK_FALSE(behind.ready());  // order
  promise.set_value(at::full({2}, 3.0F));
  CHECK(later.get() == 6.0);
  CHECK(behind.get() == 1);
  Promise<at::Tensor> fails;
  const Future<double> failed = book.call<&Notebook::sum>(fails.future());
  fails.set_error(Error(Errc::UsageFile, "no such image"));
  CHECK_THAT(error_of(failed).message(), ContainsSubstring("no such image"));
}

TEST_CASE("what a method throws comes with type, message and rank; the actor goes on",
          "[remote][failure]") {
  const Cluster cluster = cluster_of(GENERATE(false, true));
  const auto book = cluster.spawn<Notebook>(on(Rank(2)), "book");
  const Error error = error_of(book.call<&Notebook::fail>("range"));
  CHECK(error.code() == Errc::WorkerFailed);
  CHECK_THAT(
      error.what(),
      ContainsSubstring("stagecraft::tests::Notebook::fail threw std::out_of_range: page 7") &&
          ContainsSubstring("rank 2"));
  const Error own = error_of(book.call<&Notebook::fail>("error"));
  CHECK(own.code() == Errc::UsageFile);
  CHECK(own.message() == "there is no file 'nowhere'");
  CHECK(own.context().rank == Rank(2));
  CHECK_THAT(error_of(book.call<&Notebook::fail>("number")).message(),
             ContainsSubstring("threw something that is not a std::exception"));
  CHECK(book.call<&Notebook::note>(1).get() == 1);
  // An error is passed on like a value.
  const auto other = cluster.spawn<Notebook>(on(Rank(0)), "other");
  const auto bad = book.call<&Notebook::plus>(book.call<&Notebook::tensor>(-1, 0.0), 1.0);
  CHECK_THAT(error_of(other.call<&Notebook::sum>(bad)).message(), ContainsSubstring("negative"));
}

TEST_CASE("an actor whose constructor throws is not made", "[remote][failure]") {
  const Cluster cluster = cluster_of(GENERATE(false, true));
  const Error error = thrown_error([&] { (void)cluster.spawn<Notebook>(on(Rank(1)), "broken"); });
  CHECK_THAT(error.what(),
             ContainsSubstring("the constructor of stagecraft::tests::Notebook threw "
                               "std::invalid_argument: no title") &&
                 ContainsSubstring("rank 1"));
  CHECK(cluster.spawn<Notebook>(on(Rank(1)), "whole").call<&Notebook::note>(1).get() == 1);
}

TEST_CASE("options and ranks that make no sense are refused", "[remote][failure]") {
  const Cluster cluster = Cluster::local(2);
  for (const On& where : {on(Rank(2)),
                          on(Rank(-1)),
                          on(Rank(0)).concurrency(0),
                          on(Rank(0)).concurrency(1 << 20),
                          on(Rank(0)).most_calls(0),
                          on(Rank(0)).limit(std::chrono::milliseconds::max()),
                          on(Rank(0)).limit(std::chrono::milliseconds(0))}) {
    CHECK(thrown_by([&] { (void)cluster.spawn<Gate>(where); }) == Errc::UsageArgument);
  }
}

TEST_CASE("a type that a worker's program does not know is refused by name", "[remote][failure]") {
  const Cluster known = processes(1);
  CHECK_THAT(thrown_error([&] { (void)known.spawn<Stranger>(on(Rank(0))); }).what(),
             ContainsSubstring("no actor type stagecraft::tests::Stranger, but "
                               "stagecraft::tests::Gate, stagecraft::tests::Notebook") &&
                 ContainsSubstring("rank 0"));
  const Cluster generic = Cluster::spawn(1);
  CHECK_THAT(thrown_error([&] { (void)generic.spawn<Gate>(on(Rank(0))); }).what(),
             ContainsSubstring("but none at all"));
  CHECK(Cluster::local(1).spawn<Stranger>(on(Rank(0))).call<&Stranger::nothing>().get() == 0);
}

TEST_CASE("calls overlap where the actor has several threads", "[remote]") {
  const Cluster cluster = cluster_of(GENERATE(false, true));
  const auto gate = cluster.spawn<Gate>(on(Rank(1)).concurrency(3));
  std::vector<Future<int>> all;
  for (int i = 0; i < 3; ++i) {
    all.push_back(gate.call<&Gate::meet>(3));
  }
  CHECK(wait_all(all, patience()));
}

TEST_CASE("a call beyond the limit of calls waits for an earlier one to end", "[remote]") {
  const Cluster cluster = cluster_of(GENERATE(false, true));
  const auto book = cluster.spawn<Notebook>(on(Rank(0)).most_calls(1), "book");
  Promise<std::int64_t> argument;
  const auto first = book.call<&Notebook::note>(argument.future());
  std::atomic<bool> is_set = false;
  std::thread other([&] {
    const auto second = book.call<&Notebook::note>(2);
    CHECK(is_set);
    CHECK(second.get() == 2);
  });
  is_set = true;
  argument.set_value(1);
  other.join();
  CHECK(first.get() == 1);
}

TEST_CASE("a call that takes too long fails and holds back no other one", "[remote][failure]") {
  const Cluster cluster = cluster_of(GENERATE(false, true));
  const auto book =
      cluster.spawn<Notebook>(on(Rank(1)).limit(std::chrono::milliseconds(300)), "book");
  Promise<std::int64_t> never;
  const auto late = book.call<&Notebook::note>(never.future());
  const Error error = error_of(late);
  CHECK(error.code() == Errc::ClusterTimeout);
  CHECK_THAT(error.message(),
             ContainsSubstring("Notebook::note on rank 1 has not answered within 300 ms"));
  std::optional<std::int64_t> count;
  REQUIRE(eventually([&] {  // the machine may be slow
    const auto next = book.call<&Notebook::note>(1);
    count = failure_of(next) == std::nullopt ? std::optional(next.get()) : std::nullopt;
    return count.has_value();
  }));
}

TEST_CASE("a call that has not begun is cancelled, with its wait for an argument", "[remote]") {
  const Cluster cluster = cluster_of(GENERATE(false, true));
  const auto book = cluster.spawn<Notebook>(on(Rank(1)), "book");
  Promise<std::int64_t> never;
  const auto waits = book.call<&Notebook::note>(never.future());
  const auto queued = book.call<&Notebook::note>(2);
  queued.cancel();
  CHECK(failure_of(queued) == Errc::Cancelled);
  CHECK_FALSE(waits.ready());
  waits.cancel();
  CHECK(failure_of(waits) == Errc::Cancelled);
  CHECK(book.call<&Notebook::note>(3).get() == 1);
}

TEST_CASE("the last handle frees a value, and the actor after the calls that it has", "[remote]") {
  const Cluster cluster = cluster_of(GENERATE(false, true));
  const bool is_read = GENERATE(false, true);
  const auto book = cluster.spawn<Notebook>(on(Rank(1)), "book");
  {
    const Future<at::Tensor> kept = book.call<&Notebook::keep>();
    const Future<at::Tensor> copy = kept;
    CHECK(book.call<&Notebook::uses>().get() == 2);
    if (is_read) {
      CHECK(copy.get().numel() == 100'000);
    }
  }
  CHECK(book.call<&Notebook::uses>().get() == 1);
  Future<std::int64_t> last;
  {
    const auto other = cluster.spawn<Notebook>(on(Rank(1)), "other");
    for (int i = 0; i < 100; ++i) {
      last = other.call<&Notebook::note>(i);
    }
  }
  CHECK(last.get() == 100);
}

TEST_CASE("continuations run on a thread of their own and may call actors", "[remote]") {
  const Cluster cluster = cluster_of(GENERATE(false, true));
  const auto book = cluster.spawn<Notebook>(on(Rank(0)), "book");
  const auto logger = cluster.spawn<Notebook>(on(Rank(2)), "logger");
  const auto noted = book.call<&Notebook::note>(5).then(
      [logger](std::int64_t count) { return logger.call<&Notebook::note>(count).get(); });
  CHECK(noted.get() == 1);
  CHECK(logger.call<&Notebook::notes>().get() == std::vector<std::int64_t>{1});
}

TEST_CASE("a lost worker fails its calls, its unread values and those who wait for them by name",
          "[remote][failure]") {
  const Cluster cluster = processes();
  const auto book = cluster.spawn<Notebook>(on(Rank(1)), "book");
  const auto gate = cluster.spawn<Gate>(on(Rank(1)));
  const auto other = cluster.spawn<Notebook>(on(Rank(2)), "other");
  const auto unread = book.call<&Notebook::tensor>(100'000, 1.0);
  const std::int64_t process = book.call<&Notebook::process>().get();
  const auto read = book.call<&Notebook::tensor>(1000, 1.0);
  (void)read.get();
  const auto under_way = gate.call<&Gate::pass>();
  const auto slow = book.call<&Notebook::tensor>(100'000, 1.0);
  kill(static_cast<pid_t>(process), SIGKILL);
  for (const Error& error : {error_of(under_way), error_of(unread)}) {
    CHECK(error.code() == Errc::WorkerLost);
    CHECK_THAT(error.what(),
               ContainsSubstring("rank 1 is lost") && ContainsSubstring(std::to_string(process)));
  }
  CHECK(thrown_by([&] { (void)book.call<&Notebook::note>(1); }) == Errc::WorkerLost);
  CHECK(failure_of(other.call<&Notebook::sum>(unread)) == Errc::WorkerLost);
  CHECK(other.call<&Notebook::sum>(read).get() == 1000.0);
  CHECK(other.call<&Notebook::note>(1).get() == 1);
  CHECK(thrown_by([&] { (void)cluster.spawn<Gate>(on(Rank(1))); }).has_value());
  cluster.replace(Rank(1));
  const auto again = cluster.spawn<Notebook>(on(Rank(1)), "again");
  CHECK(other.call<&Notebook::sum>(again.call<&Notebook::tensor>(1000, 1.0)).get() == 1000.0);
}

TEST_CASE("a call that waits for a value of a rank that is lost fails by its name",
          "[remote][failure]") {
  const Cluster cluster = processes();
  const auto gate = cluster.spawn<Gate>(on(Rank(0)));
  const auto book = cluster.spawn<Notebook>(on(Rank(0)), "book");
  const auto taker = cluster.spawn<Notebook>(on(Rank(1)), "taker");
  const std::int64_t process = book.call<&Notebook::process>().get();
  Promise<std::int64_t> never;
  const auto waits = book.call<&Notebook::note>(never.future());
  const auto passed = taker.call<&Notebook::note>(waits);
  CHECK_FALSE(passed.wait_until(Clock::steady()->now() + std::chrono::milliseconds(50)));
  kill(static_cast<pid_t>(process), SIGKILL);
  CHECK_THAT(error_of(passed).what(), ContainsSubstring("rank 0 is lost"));
  CHECK(taker.call<&Notebook::note>(1).get() == 1);
}

TEST_CASE("handles and futures may outlive the cluster", "[remote]") {
  const bool has_processes = GENERATE(false, true);
  Future<at::Tensor> value;
  std::optional<RemoteActor<Notebook>> book;
  {
    const Cluster cluster = cluster_of(has_processes);
    book = cluster.spawn<Notebook>(on(Rank(1)), "book");
    value = book->call<&Notebook::tensor>(100'000, 1.0);
  }
  CHECK(book->call<&Notebook::note>(1).get() == 1);
  book.reset();
  CHECK(value.get().numel() == 100'000);
}

TEST_CASE("the end of a cluster does not wait for a method that runs", "[remote]") {
  pid_t process = 0;
  {
    const Cluster cluster = processes(1);
    const auto book = cluster.spawn<Notebook>(on(Rank(0)), "book");
    process = static_cast<pid_t>(book.call<&Notebook::process>().get());
    cluster.spawn<Gate>(on(Rank(0))).call<&Gate::pass>();
  }
  CHECK(eventually([&] { return kill(process, 0) == -1; }));
}

}  // namespace
}  // namespace stagecraft::tests
