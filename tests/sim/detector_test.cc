/// Tests which accesses the detector reports.
#include "stagecraft/tests/sim/detector.h"

#include <thread>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using sim::Detector;

constexpr std::uintptr_t kBlock = 4096;
constexpr std::size_t kBytes = 256;

constexpr Detector::Access kReads{kBlock, kBytes, false};
constexpr Detector::Access kWrites{kBlock, kBytes, true};

/// Two streams and a block of memory that nobody has used.
struct TwoStreams {
  TwoStreams() { detector.allocate(kBlock, kBytes, one); }

  Detector detector;
  int one = detector.add_stream("stream one");
  int two = detector.add_stream("stream two");
};

TEST_CASE("RD-1: accesses of two streams of which one writes are reported", "[sim]") {
  TwoStreams s;
  s.detector.issue(s.one, "fill", {kWrites});
  SECTION("a read after a write") {
    s.detector.issue(s.two, "copy", {kReads});
    CHECK(s.detector.take_reports() ==
          std::vector<std::string>{
              "copy (reads, stream two) is not ordered after fill (writes, stream one)"});
    CHECK(s.detector.take_reports().empty());
  }
  SECTION("a write after a write") {
    s.detector.issue(s.two, "copy", {kWrites});
    CHECK(s.detector.take_reports().size() == 1);
  }
  SECTION("a write after a read that an event had ordered") {
    s.detector.wait(s.two, s.detector.record(s.one));
    s.detector.issue(s.two, "sum", {kReads});
    s.detector.issue(s.one, "fill again", {kWrites});
    CHECK_THAT(s.detector.take_reports().at(0), ContainsSubstring("after sum (reads"));
  }
  SECTION("an event that was recorded too early") {
    const Detector::Clock early = s.detector.record(s.one);
    s.detector.issue(s.one, "fill again", {kWrites});
    s.detector.wait(s.two, early);
    s.detector.issue(s.two, "copy", {kReads});
    CHECK_THAT(s.detector.take_reports().at(0), ContainsSubstring("after fill again"));
  }
  SECTION("the last byte") {
    s.detector.issue(s.two, "copy", {{kBlock + kBytes - 1, 1, false}});
    CHECK(s.detector.take_reports().size() == 1);
  }
}

TEST_CASE("RD-1: what a stream, an event or the host orders is not reported", "[sim]") {
  TwoStreams s;
  s.detector.issue(s.one, "fill", {kWrites});
  SECTION("one stream") {
    s.detector.issue(s.one, "copy", {kReads});
  }
  SECTION("an event") {
    s.detector.wait(s.two, s.detector.record(s.one));
    s.detector.issue(s.two, "copy", {kReads});
  }
  SECTION("an event of a third stream, which waited for the first") {
    const int three = s.detector.add_stream("stream three");
    s.detector.wait(three, s.detector.record(s.one));
    s.detector.wait(s.two, s.detector.record(three));
    s.detector.issue(s.two, "copy", {kWrites});
  }
  SECTION("the host, which waited") {
    s.detector.wait_on_host(s.detector.record(s.one));
    s.detector.issue(s.two, "copy", {kWrites});
  }
  SECTION("two reads") {
    s.detector.wait(s.two, s.detector.record(s.one));
    s.detector.issue(s.one, "sum", {kReads});
    s.detector.issue(s.two, "copy", {kReads});
  }
  SECTION("memory beside it") {
    s.detector.allocate(kBlock + kBytes, kBytes, s.two);
    s.detector.issue(s.two, "copy", {{kBlock + kBytes, kBytes, true}});
  }
  CHECK(s.detector.take_reports().empty());
}

TEST_CASE("memory that another thread frees orders nothing", "[sim]") {
  TwoStreams s;
  constexpr std::uintptr_t kOther = 2 * kBlock;
  s.detector.allocate(kOther, kBytes, s.two);
  s.detector.issue(s.one, "fill", {kWrites});
  std::thread([&] {
    s.detector.wait_on_host(s.detector.record(s.one));
    s.detector.release(kOther, {s.two});
  }).join();
  s.detector.issue(s.two, "copy", {kReads});
  CHECK_THAT(s.detector.take_reports().at(0), ContainsSubstring("is not ordered after fill"));
}

TEST_CASE("RD-2: another stream may not use new memory before what its stream was given", "[sim]") {
  TwoStreams s;
  s.detector.issue(s.one, "fill", {});
  s.detector.allocate(2 * kBlock, kBytes, s.one);
  s.detector.issue(s.two, "copy", {{2 * kBlock, kBytes, true}});
  CHECK_THAT(s.detector.take_reports().at(0), ContainsSubstring("after an allocation"));
}

TEST_CASE("memory that is freed under a stream, or used afterwards, is reported", "[sim]") {
  TwoStreams s;
  s.detector.wait(s.two, s.detector.record(s.one));
  s.detector.issue(s.two, "copy", {kReads});
  SECTION("nobody keeps it for the second stream") {
    s.detector.release(kBlock, {s.one});
    CHECK(s.detector.take_reports() ==
          std::vector<std::string>{
              "memory is freed that nothing keeps for copy (reads, stream two)"});
  }
  SECTION("it is kept for the second stream") {
    s.detector.release(kBlock, {s.one, s.two});
    CHECK(s.detector.take_reports().empty());
    s.detector.issue(s.one, "fill", {kWrites});
    CHECK_THAT(s.detector.take_reports().at(0),
               ContainsSubstring("fill on stream one uses freed memory"));
  }
  SECTION("the host has seen the end of all uses before it is used again") {
    s.detector.release(kBlock, {s.one, s.two});
    s.detector.forget_uses(kBlock);
    s.detector.allocate(kBlock, kBytes, s.one);
    s.detector.issue(s.one, "fill", {kWrites});
    CHECK(s.detector.take_reports().empty());
  }
}

}  // namespace
}  // namespace stagecraft::tests
