#define BOOST_TEST_MODULE treadle
#include <boost/test/unit_test.hpp>
