/// Tests the memory that two processes share: what another process offers is judged first.
#include "stagecraft/futures/transport/shared_memory/memory_file.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include "stagecraft/tests/futures/transport/shared_memory/arenas.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::kMebi;
using testing::sealed_file;

constexpr int kSealed = F_SEAL_SHRINK | F_SEAL_GROW;

TEST_CASE("a new file has free slots, a fixed size, and no memory but its states",
          "[futures][shared_memory]") {
  const MemoryFile file = MemoryFile::make(64 * kMebi);
  CHECK(file.size() == MemoryFile::kFirstSlot + 64 * kMebi);
  CHECK(file.state(0).load() == SlotState::Free);
  CHECK(file.state(MemoryFile::kMostSlots - 1).load() == SlotState::Free);
  CHECK(ftruncate(file.descriptor().number(), MemoryFile::kFirstSlot) != 0);
  struct stat facts {};
  REQUIRE(fstat(file.descriptor().number(), &facts) == 0);
  CHECK(facts.st_blocks * 512 == MemoryFile::kFirstSlot);
}

TEST_CASE("a file of another process that could shrink, or is too small, is refused (MY-1)",
          "[futures][shared_memory]") {
  const auto refused = [](Descriptor file) {
    return refusal([&] { const MemoryFile opened(std::move(file)); }, Errc::TransportRefused);
  };
  CHECK_THAT(refused(sealed_file(kMebi, 0)), ContainsSubstring("could shrink"));
  CHECK_THAT(refused(sealed_file(kMebi, F_SEAL_GROW)), ContainsSubstring("could shrink"));
  CHECK_THAT(refused(Descriptor(open("/dev/null", O_RDWR | O_CLOEXEC))),
             ContainsSubstring("could shrink"));
  CHECK_THAT(refused(Descriptor()), ContainsSubstring("could shrink"));
  CHECK_THAT(refused(sealed_file(MemoryFile::kFirstSlot - 1, kSealed)),
             ContainsSubstring("has 147455 bytes, expected 147456 to "));
  Descriptor huge(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB));
  if (huge && ftruncate(huge.number(), 2 * kMebi) == 0 &&
      fcntl(huge.number(), F_ADD_SEALS, kSealed) == 0) {  // not every kernel has huge pages
    CHECK_THAT(refused(std::move(huge)), ContainsSubstring("pages of usual memory"));
  }
  CHECK_NOTHROW(MemoryFile(sealed_file(kMebi, kSealed)));
}

TEST_CASE("a limit of file sizes bounds the memory, and is named if nothing fits",
          "[futures][shared_memory]") {
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto limited = [&](std::int64_t bytes, auto&& work) {
    const rlimit limit{.rlim_cur = static_cast<rlim_t>(bytes), .rlim_max = before.rlim_max};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    auto result = work();
    REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
    return result;
  };
  CHECK(limited(2 * kMebi, [] { return MemoryFile::make(64 * kMebi).size(); }) == 2 * kMebi);
  CHECK_THAT(limited(kMebi / 64,
                     [] {
                       return refusal([] { (void)MemoryFile::make(64 * kMebi); },
                                      Errc::TransportRefused);
                     }),
             ContainsSubstring("67256320 bytes were wanted") && ContainsSubstring("16384") &&
                 ContainsSubstring("ulimit -f"));
}

}  // namespace
}  // namespace stagecraft
