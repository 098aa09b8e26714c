#include "stagecraft/base/error_value.h"

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

TEST_CASE("an error crosses a message with its place and its causes", "[base][errors]") {
  Error cause(Errc::DeviceOutOfMemory, "no memory left");
  cause.with({.peer = "rank 2"});
  Error error(Errc::WorkerFailed, "the backward failed; set {option}");
  error.about("clip").advise("trainer.load(file)");
  error.with({.rank = Rank(1),
              .stage = StageId(2),
              .microbatch = Microbatch(0),
              .step = Step(7),
              .task = "2B0"});
  error.because(cause);

  const Error back = to_error(to_chain(error));
  CHECK(back.code() == Errc::WorkerFailed);
  CHECK(back.option() == "clip");
  CHECK(back.advice() == "trainer.load(file)");
  CHECK(back.context() == error.context());
  REQUIRE(back.cause() != nullptr);
  CHECK(back.cause()->code() == Errc::DeviceOutOfMemory);
  CHECK(back.cause()->context() == cause.context());
  CHECK(std::string(back.what()) == error.what());
}

TEST_CASE("unknown fields of an error stay unknown", "[base][errors]") {
  const Error back = to_error(to_chain(Error(Errc::Internal, "somewhere")));
  CHECK(back.context() == ErrorContext{});
  CHECK(back.cause() == nullptr);
}

TEST_CASE("an empty chain is refused", "[base][errors]") {
  CHECK_THROWS_AS(to_error({}), Error);
}

}  // namespace
}  // namespace stagecraft
