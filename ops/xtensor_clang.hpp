#pragma once
// Include this before any other xtensor header. clang 19 matches template template parameters as C++17 says, default
// arguments included, and then finds two cases of xtensor 0.24's rebind_container equally good; a full specialisation
// decides.

#include <xtensor/xtensor_config.hpp>

#if XTENSOR_VERSION_MAJOR == 0 && XTENSOR_VERSION_MINOR < 25
#include <xtensor/xstorage.hpp>

namespace xt {
template <>
struct rebind_container<std::ptrdiff_t, svector<std::size_t, 4, std::allocator<std::size_t>, true>> {
  using type = svector<std::ptrdiff_t, 4, std::allocator<std::ptrdiff_t>, true>;
};
}  // namespace xt
#endif
